"""What bounds questions that anybody may send: how often they read the records of one unit, and how long texts become.

Both follow from the plan alone, before anything is read, priced or charged.
"""

from __future__ import annotations

from fractions import Fraction

from wpinq.core.functions.admit import GROWTH
from wpinq.core.functions.function import Function
from wpinq.core.plan.forms import Where
from wpinq.core.plan.node import Node, steps
from wpinq.core.plan.stability import times_moved
from wpinq.errors import PlanError


def check_limits(root: Node, gain: int, call: str) -> None:
    """Refuse a plan that is too large to be a question.

    Args:
        root: The plan.
        gain: By how many times its bound one unit may move any step.
        call: What the question is called in messages.

    Raises:
        PlanError: A text may become too long, or one unit could move it by more.
    """
    check_growth(root, call)
    check_gain(root, gain, call)


def check_gain(root: Node, gain: int, call: str) -> None:
    """Refuse a plan that reads the records of one unit too often: by all ways, and after parts that are disjoint.

    The ways are counted first, since those through parts are told apart by pricing, and may double with each step. Each
    step counts, not the last one alone: a limit at the end of joins moves by little, and what it limits was made.

    Raises:
        PlanError: It does.
    """
    ways: dict[Node, int] = {}
    for node in steps(root):
        ways[node] = sum(ways[source] for source in node.inputs) or 1
    if ways[root] <= gain:
        moves = (move for node in ways for move in times_moved(node))
        if max(moves, default=Fraction(0)) <= gain:
            return
    raise PlanError(f"{call}: one unit could move it by more than {gain} times its bound; read it less often.")


def check_growth(root: Node, call: str) -> None:
    """Refuse a plan whose steps, one after the other, could make a text too long.

    Raises:
        PlanError: They could.
    """
    grown: dict[Node, int] = {}
    for node in steps(root):
        before = max((grown[source] for source in node.inputs), default=1)
        after = before * max((held.growth for held in vars(node).values() if isinstance(held, Function)), default=1)
        if after > GROWTH:
            raise PlanError(f"{call}: a text may become more than {GROWTH:,} times as long, step by step; shorten it.")
        grown[node] = before if isinstance(node, Where) else after
