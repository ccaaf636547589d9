"""Collections, plans and an incremental driver for the tests of operators."""

from collections import defaultdict
from fractions import Fraction

import numpy as np
import polars as pl
from hypothesis import strategies as st

from wpinq import testing
from wpinq.collection import Collection
from wpinq.core.engines import local, reference, select
from wpinq.core.engines.job import Job, needed_columns, representatives
from wpinq.core.engines.shards import split
from wpinq.core.engines.shuffle import stages
from wpinq.core.operators.resolution import fit_noise, record_ids
from wpinq.core.plan.node import Source, sources, steps
from wpinq.core.plan.shapes import Keyed, Merge, Read, Stateless
from wpinq.core.records.batch import WEIGHT, Batch
from wpinq.core.records.kinds import series, write
from wpinq.core.records.schema import Kind
from wpinq.core.state.histogram import Histogram, is_steps
from wpinq.testing import distance, evaluate
from wpinq.testing.evaluation import leaves

__all__ = ["distance", "evaluate", "leaves"]  # as users have them
MANY = 9
"""So many batches are made one: sums of a collection with itself would make 2, 4, 8, ... of one."""


class Fine(Source):
    """A source whose weights are fractions, also below zero: what tests feed to the reference engine and to states."""

    keeps_sign = False

    @property
    def resolution(self):
        return FINE


FINE = 4


def protected(records=(), name="records", fine=False, **columns):
    """A protected collection of typed columns; a fine one has weights in quarters."""
    kinds = {column: None if kind == Kind.ANY.value else kind for column, kind in columns.items()}
    made = testing.protected(records, name=name, **kinds)
    return Collection(Fine(made._node.data)) if fine else made


values = st.integers(-1, 3)
records = st.sampled_from([(one, other) for one in range(-1, 4) for other in range(-1, 4)])  # one draw, not two
ODD = [Fraction(1), Fraction(-1), Fraction(1, FINE), Fraction(10**6), Fraction(-(10**6) - 1, FINE)]
fractions = st.sampled_from([*(Fraction(units, FINE) for units in range(-12, 13)), *5 * ODD])
collections = st.dictionaries(records, fractions, max_size=6)


@st.composite
def neighbours(draw):
    """Two weighted collections that differ in a few records."""
    before = draw(collections)
    change = draw(st.dictionaries(records, fractions, min_size=1, max_size=2))
    after = {record: before.get(record, Fraction(0)) + change.get(record, 0) for record in {**before, **change}}
    return before, after


def fractional(root):
    """What a step's resolution means: every weight is a whole number of 1/resolution."""
    return lambda weight: (weight * root.resolution).denominator == 1


class Driver:
    """Runs the shapes of a plan step by step on deltas, as an engine would that never ends."""

    def __init__(self, collection, shards=1):
        self.root = fit_noise(collection._node)
        self.shards = shards
        self.key = sources(self.root)[0].identity_key
        self.chosen = representatives([self.root])
        self.needed = needed_columns([self.root], self.chosen)
        self.order = [node for node in steps(self.root) if self.chosen[node] is node]
        self.shapes = {node: node.lower(self.needed[node]) for node in self.order}
        self.states = defaultdict(dict)
        self.histogram = Histogram(self.root.schema, self.key, self.root.held.array)

    def feed(self, *changes):
        """Absorb weighted records of each source, and pass on what follows from them at once."""
        given = iter(changes)
        out = {}
        for node in self.order:
            ups = [out[self.chosen[one]] for one in node.inputs]
            out[node] = self._step(node, self.shapes[node], ups, given)
        for batch in out[self.chosen[self.root]]:
            self.histogram.absorb(batch)

    def _step(self, node, shape, ups, given):
        match shape:
            case Read():
                return [batch_of(next(given, {}), node.schema, node.held).select(shape.columns)]
            case Stateless():
                return [shape.kernel(batch) for batch in ups[0]]
            case Merge():
                made = [shape.kernel(f, b) for up, f in zip(ups, shape.factors, strict=True) for b in up]
                return made if len(made) < MANY else [Batch.concat(made, made[0].schema).consolidate()]
            case Keyed():
                return self._keyed(node, shape, ups)

    def _keyed(self, node, shape, ups):
        states = self.states[node]
        for port, (up, keys) in enumerate(zip(ups, shape.keys, strict=True)):
            for batch in up:
                for label, part in split(batch, keys, self.key, self.shards):
                    if label not in states:
                        states[label] = shape.state(self.key)
                    states[label].absorb(port, part)
        return [state.emit() for state in states.values()]


def batch_of(weights, schema, held):
    """Weighted records as a batch."""
    columns = [
        series(column.name, [write(record[place], column.kind) for record in weights], column.kind)
        for place, column in enumerate(schema)
    ]
    units = [int(weight * held.resolution) for weight in weights.values()]
    return Batch(pl.DataFrame([*columns, pl.Series(WEIGHT, units, dtype=held.column)]), schema)


def run_flow(collection, shards=1):
    """Run the real engines on the plan's own sources: the plain loop, tasks in parts, and bytewax where it is."""
    root = fit_noise(collection._node)
    key = sources(root)[0].identity_key
    looped = local.run(Job([root], key))[0]
    others = [stages.run_in_loop(Job([root], key), shards)[0]]
    if select.installed():
        from wpinq.core.engines.bytewax import flow

        others.append(flow.run(Job([root], key, shards=shards))[0])
    for found in others:
        for one, other in zip(found.content(), looped.content(), strict=True):
            assert np.array_equal(one, other)
    return looped


def same(histogram, root, expected):
    """Whether a histogram holds exactly these records and weights."""
    root = fit_noise(root)
    key = sources(root)[0].identity_key
    ids = record_ids(expected, root.schema, key) if expected else np.empty((0, 2), np.uint64)
    frame = pl.DataFrame(
        [
            series(column.name, [write(record[place], column.kind) for record in expected], column.kind)
            for place, column in enumerate(root.schema)
        ]
    )
    found = histogram.lookup(frame, ids).tolist()
    wanted = [weight * root.resolution for weight in expected.values()]
    return found == wanted and size(histogram, root) == len(expected)


def size(histogram, root):
    """The number of bins that are not zero."""
    ids, _ = histogram.content()
    if is_steps(root.schema):
        ends = ids.view(np.int64)
        return int((ends[:, 1] - ends[:, 0]).sum())
    return len(ids)


def expected(collection, *inputs):
    """What the reference engine says that a measurement of the plan holds."""
    root = fit_noise(collection._node)
    return reference.run(root, dict(zip(leaves(collection), inputs, strict=True)))
