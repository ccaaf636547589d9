"""Size of expressions: the nodes of their trees (`Node.size`), which are bounded before Polars makes any.

Some rules use a part several times: `a % b` as a quotient and as a product, `nullif(a, b)` as a test and as a value. So
a short text may stand for a tree that doubles with each pair of brackets, and Polars walks trees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import Any

from wpinq.errors import PlanError

MOST = 5_000
"""Nodes of one expression."""
TOGETHER = 4 * MOST
"""Nodes of all expressions of one question."""


class TooLargeError(PlanError):
    """An expression is too large to be made."""


class Total:
    """Counts the nodes of one question's expressions."""

    def __init__(self) -> None:
        self._left = TOGETHER

    def holds(self, nodes: int) -> bool:
        """Whether there is place for so many."""
        return nodes <= self._left

    def add(self, nodes: int, call: str, text: str = "") -> None:
        """Count an expression, or a copy of one.

        Raises:
            TooLargeError: There are too many.
        """
        self._left -= nodes
        if self._left < 0:
            where = f": {text}" if text else ""
            raise TooLargeError(
                f"{call}{where}: with it all expressions together have more than {TOGETHER:,} nodes; ask for less at a "
                "time."
            )


_QUESTION: ContextVar[Total | None] = ContextVar("question", default=None)


@contextmanager
def question_size() -> Iterator[None]:
    """All expressions that are made inside are of one question."""
    if _QUESTION.get() is not None:
        yield
        return
    token = _QUESTION.set(Total())
    try:
        yield
    finally:
        _QUESTION.reset(token)


def copied(node: Any, call: str, text: Callable[[], str]) -> None:
    """Count a part of a text that is written once and read again in another place, such as what a name stands for.

    Raises:
        TooLargeError: All that was read of the question is too much.
    """
    counts, nodes = total_size(), sum(1 for _ in islice(node.walk(), TOGETHER + 1))
    if not counts.holds(nodes):
        counts.add(nodes, call, text())
    counts.add(nodes, call)


def total_size() -> Total:
    """What counts the question that is being read; outside of one, what begins to count."""
    return _QUESTION.get() or Total()


def insist(nodes: int, call: str, text: str) -> None:
    """Refuse an expression.

    Raises:
        TooLargeError: It has too many nodes.
    """
    if nodes > MOST:
        raise TooLargeError(
            f"{call}: {text} stands for an expression of {nodes:,} nodes, and the most is {MOST:,}: what is nested in "
            "it is used several times over; compute a part of it beforehand, in a subquery or a step of its own."
        )
