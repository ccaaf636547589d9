"""Bugs that are put back into the code of today: each patches names, and a name that nothing uses any more is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any


@dataclass(frozen=True)
class Plant:
    """A bug.

    Attributes:
        what: In a few words.
        patches: Put it back.
        seed: Of the case that finds it; where the generator has moved, another one does.
        checks: The first letters of the findings that count, as the judge has them; all findings by default.
        theme: Of the case that finds it, where its fuzzer has themes.
    """

    what: str
    patches: Callable[[], list[Any]]
    seed: int = 0
    checks: str = ""
    theme: str = ""

    def planted(self) -> AbstractContextManager[set[str]]:
        """Put it back; gives the names that are patched and that nothing has used yet."""
        return planted(*self.patches())


@contextmanager
def planted(*patches: Any) -> Iterator[set[str]]:
    """Patches, all open; gives the names that they patch and that nothing has used yet."""
    unused: set[str] = set()
    with ExitStack() as stack:
        for one in patches:
            if isinstance(name := getattr(one, "attribute", None), str):
                unused.add(name)
                one.new = watched(one.new, partial(unused.discard, name))
                if not callable(one.new) and not isinstance(one.new, property | classmethod):
                    unused -= {name} & names_in(one.getter().__file__)  # a constant: some code names it
            stack.enter_context(one)
        yield unused


def watched(new: Any, use: Callable[[], None]) -> Any:
    """What stands in for a name, and tells that it is used."""
    if isinstance(new, property):
        return property(watched(new.fget, use))
    if isinstance(new, classmethod):
        return classmethod(watched(new.__func__, use))
    if not callable(new):
        return new

    def call(*args: Any, **options: Any) -> Any:
        use()
        return new(*args, **options)

    return call


def names_in(path: str) -> set[str]:
    """The names that the functions of a module read."""
    found, codes = set[str](), [compile(Path(path).read_text(), path, "exec")]
    while codes:
        code = codes.pop()
        inner = [one for one in code.co_consts if isinstance(one, CodeType)]
        found |= {name for one in inner for name in one.co_names}
        codes += inner
    return found
