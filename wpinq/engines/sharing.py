"""What several plans have in common, and which columns of it anything reads."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from wpinq.plan.node import Node, Source, fingerprints, steps


def representatives(roots: Sequence[Node]) -> dict[Node, Node]:
    """For each step the first one that means the same, so that common steps run once.

    Two sources are one where they read the same files or the same object: what a caller calls one version may be two.
    """
    first: dict[Hashable, Node] = {}
    chosen: dict[Node, Node] = {}
    for node, digest in fingerprints(*roots).items():
        place: Hashable = tuple(chosen[source_node] for source_node in node.inputs)
        if isinstance(node, Source):
            place = node.data.reader.version() or id(node.data.reader)
        chosen[node] = first.setdefault((digest or id(node), place), node)
    return chosen


def needed_columns(roots: Sequence[Node], chosen: dict[Node, Node]) -> dict[Node, frozenset[str]]:
    """For each representative step, which of its columns anything reads; a measurement reads all of its own."""
    needed: dict[Node, frozenset[str]] = dict.fromkeys(chosen.values(), frozenset())
    for root in roots:
        needed[chosen[root]] = frozenset(root.schema.names)
    for node in reversed(steps(*roots)):
        if chosen[node] is node:
            for source_node, names in zip(node.inputs, node.required(needed[node]), strict=True):
                needed[chosen[source_node]] |= names
    return needed
