"""What an operator needs of a collection: its plan, and a way to make a collection of a longer plan.

Operators are functions from a `Builder[C]` to a `C`, so they need not import `collection.py`, which lists them as
methods of `Collection`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from wpinq.core.plan.node import Node

C = TypeVar("C")
"""The class of collections."""


class Builder(Generic[C]):
    """A plan that operators extend.

    Args:
        node: The last step of the plan.
    """

    __slots__ = ("_node",)

    def __init__(self, node: Node) -> None:
        self._node = node

    @abstractmethod
    def _then(self, node: Node) -> C:
        """A collection of a longer plan."""

    @abstractmethod
    def _commit(self, quotes: Sequence[Any]) -> list[Any]:
        """Charge what some quotes say, all of it or nothing, and give the charged queries, in their order."""
