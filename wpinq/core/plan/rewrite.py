"""Rewrite a plan: replace some of its steps, such as a live source by one of its closed epochs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace

from wpinq.core.plan.node import Node, steps


def rewrite(root: Node, change: Callable[[Node], Node]) -> Node:
    """The plan with every step replaced, inputs first; a step without a change below it stays the same object.

    Args:
        root: The plan.
        change: Maps a step, whose inputs are replaced already, to its replacement, or to itself.
    """
    return rewrite_all([root], change)[0]


def rewrite_all(roots: Sequence[Node], change: Callable[[Node], Node]) -> list[Node]:
    """The same of several plans; what they have in common stays common."""
    made: dict[Node, Node] = {}
    for node in steps(*roots):
        made[node] = change(_over(node, made))
    return [made[root] for root in roots]


def _over(node: Node, made: dict[Node, Node]) -> Node:
    """The step over changed inputs."""
    if all(made[source_node] is source_node for source_node in node.inputs):
        return node
    values = {field.name: getattr(node, field.name) for field in fields(node) if field.init}  # type: ignore[arg-type]
    new = {name: _changed(value, made) for name, value in values.items()}
    return replace(node, **new)  # type: ignore[type-var]


def _changed(value: object, made: dict[Node, Node]) -> object:
    if isinstance(value, Node):
        return made[value]
    return tuple(_changed(item, made) for item in value) if isinstance(value, tuple) else value
