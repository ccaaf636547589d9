"""The reference engine: dictionaries and exact fractions, slow and obviously right. It is the oracle of every test.

It does not bypass the budget, because the caller has to give it the records themselves, as Python values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from wpinq.core.functions.isolate import one_thread
from wpinq.core.plan.node import Node, Record, Source, Weighted, steps
from wpinq.core.records.values import decode, encode


def weigh(records: Iterable[Record]) -> dict[Record, Fraction]:
    """Count records; equal ones add up."""
    out: dict[Record, Fraction] = defaultdict(Fraction)
    for record in records:
        out[canonical(record)] += 1
    return out


def canonical(record: Record) -> Record:
    """The record with each value in its canonical form, so that equal records are one."""
    return tuple(decode(encode(value)) for value in record)


def run(root: Node, collections: Mapping[Source, Weighted]) -> dict[Record, Fraction]:
    """Evaluate a plan by the definitions of its steps.

    Args:
        root: The plan.
        collections: For each source step the records that it holds, and their weights.

    Returns:
        The records of non-zero weight.
    """
    return run_reference([root], collections)[0]


def run_reference(roots: Sequence[Node], collections: Mapping[Source, Weighted]) -> list[dict[Record, Fraction]]:
    """Evaluate some plans, each step that they share once; see `run`."""
    result: dict[Node, dict[Record, Fraction]] = {}
    with one_thread():
        for node in steps(*roots):
            if isinstance(node, Source):
                weights = dict(collections[node])
            else:
                weights = node.define(*(result[source_node] for source_node in node.inputs))
            result[node] = {record: weight for record, weight in _merged(weights).items() if weight != 0}
    return [result[root] for root in roots]


def _merged(weights: Weighted) -> dict[Record, Fraction]:
    out: dict[Record, Fraction] = defaultdict(Fraction)
    for record, weight in weights.items():
        out[canonical(record)] += weight
    return out
