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
    signature = inspect.signature(function)

    @functools.wraps(function)
    def chosen(*args: Any, **words: Any) -> Any:
        try:
            return function(*args, **words)
        except WaitingError as error:  # as it is priced, so nothing was charged
            waits = error
        from wpinq.aggregates.automatic import priced

        of = args[0]
        call = signature.bind(*args, **words)
        odd = [name for name in ("within", "rho", "quote") if call.arguments.get(name) is not None]
        epsilon = call.arguments.get("epsilon")
        if odd or epsilon is None:
            raise waits
        keys, edges = call.arguments.get("keys"), call.arguments.get("edges")
        bins = 1 if "keys" in signature.parameters and keys is None else None
        bins = len(keys) if isinstance(keys, Sized) else len(edges) if isinstance(edges, Sized) else bins
        amount = positive(epsilon, f"{function.__name__}(epsilon=...)")
        choice = priced(of, [of._node], amount, bins, analyst=call.arguments.get("analyst"))
        if choice is None:
            raise waits
        (root,) = choice.bounds([of._node], choice.number(of))
        call.arguments["self"], call.arguments["epsilon"] = of._then(root), choice.rest
        return function(*call.args, **call.kwargs)

    return cast("F", chosen)
