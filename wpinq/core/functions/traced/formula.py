"""Expressions of columns as a function again: every operation is done by Python, on the values of one record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wpinq.core.functions.traced.expression import Expression
from wpinq.core.functions.traced.rules import PYTHON
from wpinq.core.functions.traced.standin import length
from wpinq.errors import PlanError

MEANING = {**PYTHON, "len": length}
"""What operations do, with stand-ins too."""


@dataclass(frozen=True)
class Formula:
    """A function of these columns, in this order.

    Attributes:
        nodes: The expression of each output.
        reads: The columns.
    """

    nodes: tuple[Expression, ...]
    reads: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in (name for node in self.nodes for name in node.value_tree.columns):
            if name not in self.reads:
                raise PlanError(f"the expression reads column {name!r}, which reads= does not name.")

    def __call__(self, *values: Any) -> Any:
        """The output, or the outputs where there are several."""
        columns = dict(zip(self.reads, values, strict=True))
        result = tuple(_value(node, columns) for node in self.nodes)
        return result if len(result) > 1 else result[0]


def _value(node: Expression, columns: Mapping[str, Any]) -> Any:
    if node.name == "column":
        return columns[node.options[0]]
    if node.name == "constant":
        return node.value
    return MEANING[node.name](*[_value(part, columns) for part in node.inputs], *node.options)
