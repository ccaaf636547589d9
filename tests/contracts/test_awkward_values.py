"""Values of every kind that are odd: what a step makes of a record depends on that record alone.

However records are cut into batches, and whatever lies beside them, the sum of what a step gives is the same. And rows
are never joined, grouped or made distinct by numbers as Polars compares them, but by their bits.
"""

import datetime as dt
import math

import polars as pl
import pytest
from depth import thin
from polars import col
from strategies import Driver, protected

from wpinq.core.records.schema import Kind

SPAN = dt.timedelta(microseconds=1)
VALUES = {
    Kind.INT: [0, 1, -1, 2**63 - 1, -(2**63)],
    Kind.FLOAT: [math.nan, 0.0, -0.0, 1.0, math.inf, -math.inf, 5e-324, 1e308],
    Kind.TEXT: ["", "a", "\0", "e\u0301", "é", "İß", "0" * 300],
    Kind.BOOL: [True, False],
    Kind.BYTES: [b"", b"n", b"\xff", b"a"],
    Kind.DATE: [dt.date.min, dt.date.max, dt.date(1970, 1, 1)],
    Kind.TIME: [dt.datetime.min, dt.datetime.max, dt.datetime(1969, 12, 31, 23, 59)],
    Kind.INSTANT: [at.replace(tzinfo=dt.UTC) for at in (dt.datetime.min, dt.datetime.max, dt.datetime(1970, 1, 1))],
    Kind.SPAN: [SPAN * (2**63 - 1), SPAN * -(2**63), dt.timedelta(0), dt.timedelta(days=1)],
}
VALUES[Kind.ANY] = [value for values in VALUES.values() for value in values[:3]] + [(1, math.nan), ((), ("a",)), b"n"]


def records(kind):
    """Each value beside one of two texts, some of them twice, and null beside both."""
    values = [None, *VALUES[kind]]
    return [(value, "pq"[place % 2]) for place, value in enumerate([*values, *values[:3], None, None])]


TYPED = {
    "polars": lambda c: c.map([col("v"), col("s")]).map([pl.when(col("s") == "p").then(col("v")).alias("v"), col("s")]),
    "sql": lambda c: c.map("CASE WHEN s = 'p' THEN v END AS v, s"),
    "sql filter": lambda c: c.filter("v IS NULL OR s = 'p'"),
    "coalesce": lambda c: c.map("coalesce(v, v) AS v, nullif(v, v) AS w"),
}
STEPS = {
    "traced": lambda c: c.map(lambda v, s: (s, v)),
    "compared": lambda c: c.filter(lambda v: v == v),
    "plain": lambda c: c.map(lambda v, s: [v, s][0] if True else 0),
    "plain filter": lambda c: c.filter(lambda v: v is not None or False),
    "typed": lambda c: c.map(lambda v, s: (v, s)[:2] if True else 0, columns={"v": object, "s": str}),
    "flat_map": lambda c: c.flat_map(lambda v, s: [v, s]),
    "align": lambda c: c.map(lambda v: v).concat(c.map(lambda s: s)),
    "subtract": lambda c: c.subtract(c.filter(lambda s: s == "p")),
    "union": lambda c: c.union(c.filter(lambda s: s == "p")),
    "intersect": lambda c: c.intersect(c.filter(lambda s: s == "p")),
    "distinct": lambda c: c.distinct(),
    "group_by": lambda c: c.group_by("v"),
    "groups": lambda c: c.group_by("s"),
    "count": lambda c: c.group_by("v", len),
    "reduce": lambda c: c.group_by("s", lambda group: len({repr(one) for one in group})),
    "join": lambda c: c.join(c, on="v"),
    "joined": lambda c: c.join(c, on="s"),
    "semijoin": lambda c: c.semijoin(c.filter(lambda s: s == "p"), on="v"),
    "antijoin": lambda c: c.antijoin(c.filter(lambda s: s == "p"), on="v"),
    "shave": lambda c: c.map(lambda v: v).shave(),
    "partition": lambda c: c.partition("v", [None])[None],
} | TYPED


def cut(rows):
    """In runs of one, two and three."""
    runs, place = [], 0
    while place < len(rows):
        runs.append(rows[place : place + 1 + len(runs) % 3])
        place += len(runs[-1])
    return runs


def planned(name, kind):
    return STEPS[name](protected([], v=kind.value, s="text"))


def total(collection, parts, shards=2):
    """What a plan gives in the end for records that come in parts: identities and weights."""
    driver = Driver(collection, shards)
    sources = sum(not node.inputs for node in driver.order)
    for part in parts:
        weights = {}
        for record in part:
            weights[record] = weights.get(record, 0) + 1
        driver.feed(*[weights] * sources)
    ids, weights = driver.histogram.content()
    return sorted(zip(ids.tolist(), weights.tolist(), strict=True))


@thin(12)
@pytest.mark.parametrize("name", STEPS)
def test_a_sum_of_changes_is_the_change_of_the_sum(name):
    for kind in VALUES if name not in TYPED else set(VALUES) - {Kind.ANY}:
        plan, rows = planned(name, kind), records(kind)
        whole = total(plan, [rows])
        halves = [rows[::2], rows[1::2]]
        assert total(plan, cut(rows[::-1]), shards=1) == whole, kind  # a row is in one shard anyway
        assert total(plan, halves) == whole, kind


def test_rows_are_never_compared_by_numbers(monkeypatch):
    """Not by Polars' own: it merges columns of one distinct value, and there NaN is not NaN."""
    met = []

    def watch(owner, method, keys):
        own = getattr(owner, method)

        def watched(self, *args, **kwargs):
            frame = self if isinstance(self, pl.DataFrame) else self.collect_schema()
            schema = frame.schema if isinstance(frame, pl.DataFrame) else frame
            names = keys(schema, *args, **kwargs)
            met.append(method)
            assert not any(schema[one].is_float() for one in names), f"{method} by a number"
            return own(self, *args, **kwargs)

        monkeypatch.setattr(owner, method, watched)

    def listed(names):
        return [one for name in names for one in (name if isinstance(name, (list, tuple)) else [name])]

    for owner in (pl.DataFrame, pl.LazyFrame):
        watch(owner, "join", lambda schema, other, on=(), **_: listed([on]))
        watch(owner, "group_by", lambda schema, *by, **_: listed(by))
        watch(owner, "unique", lambda schema, subset=None, **_: listed([subset]) if subset else schema.names())
    for name in STEPS:
        total(planned(name, Kind.FLOAT), [records(Kind.FLOAT)[:5], records(Kind.FLOAT)[5:]])
    assert set(met) == {"join", "group_by", "unique"}
