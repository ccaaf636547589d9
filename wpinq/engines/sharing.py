"""What several plans have in common, and which columns of it anything reads."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from wpinq.plan import Node, fingerprints, steps


def representatives(roots: Sequence[Node]) -> dict[Node, Node]:
    """For each step the first one that means the same, so that common steps run once."""
    first: dict[Hashable, Node] = {}
    chosen: dict[Node, Node] = {}
    for node, digest in fingerprints(*roots).items():
        chosen[node] = first.setdefault((digest or id(node), node.schema), node)
    return chosen


def needed_columns(roots: Sequence[Node], chosen: dict[Node, Node]) -> dict[Node, frozenset[str]]:
    """For each representative step, which of its columns anything reads; a measurement reads all of its own."""
    needed: dict[Node, frozenset[str]] = dict.fromkeys(chosen.values(), frozenset())
    for root in roots:
        needed[chosen[root]] = frozenset(root.schema.names)
    for node in reversed(steps(*roots)):
        if chosen[node] is node:
            for one, names in zip(node.inputs, node.required(needed[node]), strict=True):
                needed[chosen[one]] |= names
    return needed
