"""Bias: what bounds, clamping and weights keep out of an answer, in words. It is no noise, and no interval holds it."""

from __future__ import annotations

from wpinq.core.plan.node import Node, steps


def biases(root: Node) -> tuple[str, ...]:
    """What the steps of a plan keep out of its answers, each once."""
    result = [node.bias for node in steps(root)]
    return tuple(dict.fromkeys(item for item in result if item))
