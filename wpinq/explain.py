"""Explain: a plan as a tree, with what each step does to the guarantee and what a measurement would cost.

It reads plans and nothing else: no source, no ledger and no data.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING

from wpinq.exact import Amount, decimal, positive
from wpinq.plan import Node, Source
from wpinq.stability import noise_scale, paths, sensitivities

if TYPE_CHECKING:
    from wpinq.collection import Collection
    from wpinq.dataset import DataSet


class Shown(str):
    """A text that was already printed: the prompt does not print it again."""

    __slots__ = ()

    def __repr__(self) -> str:
        return ""


def explain(self: Collection, epsilon: Amount | None = None) -> str:
    """Print the plan as a tree, and what a measurement with this epsilon would cost; spend nothing.

    Args:
        epsilon: Shows the noise scale and the charge to each source as well.

    Returns:
        The text.
    """
    return show_measured(self._node, None if epsilon is None else positive(epsilon, "explain(epsilon=...)"))


def show_measured(root: Node, epsilon: Fraction | None, mechanism: str = "geometric") -> str:
    """Print and return the tree of a plan and the cost of measuring it."""
    lines = list(_cost(root, epsilon, mechanism)) if epsilon is not None else []
    text = "\n".join([*lines, *tree(root), "", *_uses(root)])
    print(text)  # noqa: T201
    return Shown(text)


def tree(root: Node) -> list[str]:
    """The plan from the measurement back to its sources, one step a line."""
    lines: list[str] = []

    def visit(node: Node, lead: str, branch: str) -> None:
        lines.append(f"{lead}{branch}{node.title}  {node.schema}  {_stability(node)}")
        deeper = lead + {"": "", "├─ ": "│  ", "└─ ": "   "}[branch]
        for number, one in enumerate(node.inputs):
            visit(one, deeper, "└─ " if number == len(node.inputs) - 1 else "├─ ")

    visit(root, "", "")
    return lines


def _stability(node: Node) -> str:
    if isinstance(node, Source):
        return f"one {node.data.unit.text} moves it by {decimal(node.data.unit.bound)}"
    factors = sorted(set(node.stability), reverse=True)
    part = f", part {node.part[1]}" if node.part else ""
    return f"stability {' and '.join(decimal(one) for one in factors)}{part}"


def _cost(root: Node, epsilon: Fraction, mechanism: str) -> list[str]:
    scale = noise_scale(root, epsilon)
    lines = [f"measure(epsilon={decimal(epsilon)})  {mechanism} noise of scale {decimal(scale)}"]
    for data, move in sensitivities(root).items():
        lines.append(f"  charges {data.name} {decimal(move / scale)} of its budget")
    return lines


def _uses(root: Node) -> list[str]:
    """How often each source is used: the number that the noise is paid by."""
    total: dict[DataSet, Fraction] = defaultdict(Fraction)
    for (data, _), stability in paths(root).items():
        total[data] += stability
    return [f"{data.name}: used {decimal(count)} times, counting stability" for data, count in total.items()]
