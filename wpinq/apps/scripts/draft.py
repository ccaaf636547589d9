"""Charge all measurements of a dataflow script at once, or none.

A script is a program: its measurements are known only after it was run, and it may observe one measurement before it
makes the next. So it is first run over no records, which shows its errors, and whether it only measures. Then it is run
on collections that make measurements without charging for them, and all of them are charged at its end. A script that
observes while it runs, or measures more than it returns, is charged step by step instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wpinq.collection import Collection
from wpinq.core import ChargedQuery, charge, sources

if TYPE_CHECKING:
    from wpinq import Measurement, Quote
    from wpinq.core import Node


class Draft(Collection):
    """A collection whose measurements are not charged yet, and cannot be answered before.

    Attributes:
        made: The measurements that were made of it, and of what it was transformed to.
    """

    __slots__ = ("_views", "made")

    def __init__(self, node: Node, views: Collection, made: list[ChargedQuery]) -> None:
        super().__init__(node)
        self._views, self.made = views, made

    def _then(self, node: Node) -> Collection:
        return Draft(node, self._views, self.made)

    def _commit(self, quotes: Sequence[Quote[Any]]) -> list[Any]:
        drafted = [quote.query for quote in quotes]
        self.made += drafted
        return drafted

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._views, name)  # what a live source can do besides


def only_measures(rehearsed: Mapping[str, Measurement], views: Collection) -> bool:
    """Whether a script that was run on these views did nothing but make the measurements that it returned."""
    returned = {item.question for item in rehearsed.values()}
    rows = sources(views._node)[0].ledger.entries()
    return all(
        row.kind in ("open", "checkpoint") or (row.kind == "charge" and row.question in returned) for row in rows
    )


def charged(
    script: Callable[[Collection], dict[str, Measurement]],
    views: Collection,
    check: Callable[[Mapping[str, Measurement]], None] | None = None,
) -> dict[str, Measurement]:
    """Run a script that only measures, and charge for all of it, or for nothing; `check` may refuse before.

    Raises:
        BudgetError: Its measurements cost more together than is left; nothing was charged.
    """
    draft = Draft(views._node, views, [])
    result = script(draft)
    if check is not None:
        check(result)
    charge(draft.made)
    return result
