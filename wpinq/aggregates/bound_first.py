"""Bound first: methods that charge, of a collection that waits for its bound (`automatic.py`)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sized
from typing import Any, TypeVar, cast

from wpinq.core.plan.stability import WaitingError
from wpinq.exact import positive

F = TypeVar("F", bound=Callable[..., Any])


def chooses(function: F) -> F:
    """Let a method that charges choose the bound first, where its collection waits for one.

    Its bins are the groups or the intervals between edges that it is given; else it has one bin, if it may have groups.

    Args:
        function: The method, with `epsilon`, and perhaps `keys` or `edges`, and `analyst`.
    """
    given = inspect.signature(function)

    @functools.wraps(function)
    def chosen(*args: Any, **words: Any) -> Any:
        try:
            return function(*args, **words)
        except WaitingError as error:  # as it is priced, so nothing was charged
            waits = error
        from wpinq.aggregates.automatic import priced

        of = args[0]
        asked = given.bind(*args, **words)
        odd = [name for name in ("within", "rho", "quote") if asked.arguments.get(name) is not None]
        epsilon = asked.arguments.get("epsilon")
        if odd or epsilon is None:
            raise waits
        keys, edges = asked.arguments.get("keys"), asked.arguments.get("edges")
        bins = 1 if "keys" in given.parameters and keys is None else None
        bins = len(keys) if isinstance(keys, Sized) else len(edges) if isinstance(edges, Sized) else bins
        amount = positive(epsilon, f"{function.__name__}(epsilon=...)")
        found = priced(of, [of._node], amount, bins, analyst=asked.arguments.get("analyst"))
        if found is None:
            raise waits
        (root,) = found.bounds([of._node], found.number(of))
        asked.arguments["self"], asked.arguments["epsilon"] = of._then(root), found.rest
        return function(*asked.args, **asked.kwargs)

    return cast("F", chosen)
