"""Every operator as a step from pairs of integers to pairs of integers, and random plans of several of them.

A contract test that covers all operators follows from one line here, and a sample of each step for the test of
fingerprints; `CALLS` has each with arguments that it takes, which `attacks/test_odd_arguments.py` exchanges.
"""

from dataclasses import replace
from fractions import Fraction

import polars as pl
from hypothesis import strategies as st
from strategies import protected

PAIR = {"a": int, "b": int}


def swap(a, b):
    return (b, a)


def halve(a, b):
    return (a // 2, b)


def few(a, b):
    return [(a, i) for i in range(b)] + [(a, 0)] * (b > 1)


def cuts(a, b):
    """Thicknesses of a record: one, some, endless, and none for which it is dropped."""
    return {0: 2, 1: [1, 0.75, "5/2"], 2: [Fraction(1, 2)] * 2 + [3]}.get(b) or (1 / (a * i) for i in range(1, 9))


TOWNS = pl.DataFrame({"a": [2, 0, 1], "size": [1, 0, 1]})


def one_window(collection):
    return collection._then(replace(collection._node, number=0))


UNARY = {
    "map: swap": lambda c: c.map(swap),
    "map: merge": lambda c: c.map(halve),
    "map: plain": lambda c: c.map(lambda a, b: (a if b > 0 else -a, 10 // b), columns=PAIR),
    "map: nothing": lambda c: c.map(lambda a, b: (1, 2)),
    "flat_map: nothing": lambda c: c.flat_map(lambda a, b: [(1, 2), (3, 4)], columns=PAIR),
    "partition: nothing": lambda c: c.partition(lambda a, b: 1, [1])[1],
    "filter": lambda c: c.filter(lambda a, b: a < b),
    "shave": lambda c: c.shave().map(lambda a, b, index: (a, index)),
    "shave: thin": lambda c: c.shave("0.5").map(lambda a, b, index: (index, b)),
    "shave: sequence": lambda c: c.shave([1, "1/3", 2]).map(lambda a, b, index: (b, index)),
    "shave: by record": lambda c: c.shave(cuts, step="1/2").map(lambda a, b, index: (b, index)),
    "shave: by number": lambda c: c.shave(lambda a, index: index).map(lambda a, b, index: (b, index)),
    "shave: twice": lambda c: c.shave().map(lambda a, b, index: index).shave(),
    "distinct": lambda c: c.distinct(),
    "distinct: at most": lambda c: c.distinct("5/3"),
    "flat_map": lambda c: c.flat_map(lambda a, b: [(a, b % (i + 1)) for i in range(b % 5)], columns=PAIR),
    "flat_map: at most": lambda c: c.flat_map(lambda a, b: [(a, i) for i in range(a * b)], columns=PAIR, at_most=3),
    "flat_map: whole": lambda c: c.flat_map(few, columns=PAIR, at_most=2, whole=True),
    "group_by: len": lambda c: c.group_by("a", len),
    "group_by": lambda c: c.group_by("b").map(lambda b, group: (b, group[0][0]), columns=PAIR),
    "group_by: reduce": lambda c: c.group_by(lambda a, b: a + b, lambda group: sum(a for a, _ in group), {"b": int}),
    "window": lambda c: one_window(c.window(2, at="a")),
    "partition": lambda c: c.partition("a", [0, 1])[1],
    "partition: function": lambda c: c.partition(lambda a, b: a + b, [1, 2, 3])[2],
    "limit": lambda c: c.limit("a"),
    "join: public": lambda c: c.join(TOWNS, on="a").map(lambda b, size: (b, size)),
    "join: public, left": lambda c: c.join(TOWNS, on="a", how="left").map(lambda size, a: (size or 0, a), columns=PAIR),
    "limit: function": lambda c: c.limit(lambda a, b: a * b, 2),
}
BINARY = {
    "concat": lambda c, d: c.concat(d),
    "subtract": lambda c, d: c.subtract(d),
    "union": lambda c, d: c.union(d),
    "intersect": lambda c, d: c.intersect(d),
    "semijoin": lambda c, d: c.semijoin(d, on="a"),
    "semijoin: function": lambda c, d: c.semijoin(d, left=lambda a, b: a + b, right="b"),
    "antijoin": lambda c, d: c.antijoin(d, left="a", right="b"),
    "join": lambda c, d: c.join(d, on="a").map(lambda b, b_2: (b, b_2)),
    "join: result": lambda c, d: c.join(d, left="b", right="a", result=lambda b, b_2: (b, b_2)),
    "join: made": lambda c, d: c.join(d, on="a", result=lambda a, b, b_2: (a + b, 6 // b_2), columns=PAIR),
    "join: at most": lambda c, d: c.join(d, on="a", at_most=3).map(lambda b, b_2: (b, b_2)),
    "join: crossed": lambda c, d: c.join(d, left=["a", "b"], right=["b", "a"]),
    "join: key alone": lambda c, d: c.map(lambda a: a, columns=["a"]).join(d, on="a", result=lambda b: (b, b)),
    "join_rows": lambda c, d: c.limit("a", 2).join_rows(d.limit("b"), left="a", right="b", result=lambda b, a: (b, a)),
    "join_rows: whole": lambda c, d: (
        c.limit("b", 2).filter(lambda b: b > 0).join_rows(d.limit("a"), left="b", right="a").map(lambda a, b: (a, b))
    ),
    "join_rows: left": lambda c, d: (
        c.limit("a", 2).join_rows(d.limit("b"), left="a", right="b", how="left").map(lambda b, b_2: (b, b_2 or 7))
    ),
    "join_rows: left, result": lambda c, d: c.limit("a").join_rows(
        d.limit("b"), left="a", right="b", how="left", result=lambda a, b: (a, b)
    ),
    "join: function": lambda c, d: c.join(d, on=halve, result=lambda key_1, b: (key_1, b)),
}
STEPS = {name: (1, step) for name, step in UNARY.items()} | {name: (2, step) for name, step in BINARY.items()}
WHOLE = {
    "group_by: whole len": lambda c: c.group_by("a", len, whole=True),
    "group_by: whole": lambda c: c.group_by("a", lambda group: sum(b for _, b in group), {"b": int}, whole=True),
}
"""These take whole weights only."""
PRICES = (
    dict.fromkeys(["limit", "limit: function", "flat_map: whole", *WHOLE], (2,))
    | dict.fromkeys(["semijoin", "semijoin: function", "antijoin"], (2, 1))
    | dict.fromkeys(["join_rows", "join_rows: whole", "join_rows: left, result"], (2, 4))
    | {"join_rows: left": (2, 8)}
)
"""Stabilities that are not 1, said a second time."""
HEAVY = {"shave", "shave: thin", "shave: sequence", "shave: by record", "shave: by number", "shave: twice"}
"""Their output grows with weights, so they are tried on small weights only."""


UNITS = {name: (1, step) for name, step in WHOLE.items()}
CALLS = {
    "map": lambda views: (views.map, {"function": "page", "columns": ["p"]}),
    "filter": lambda views: (views.filter, {"predicate": "page='a'"}),
    "flat_map": lambda views: (
        views.flat_map,
        {"function": lambda page: [page], "columns": ["p"], "at_most": 2, "whole": False},
    ),
    "group_by": lambda views: (views.group_by, {"key": "page", "reduce": len, "columns": ["c"], "whole": False}),
    "join": lambda views: (views.join, {"other": views, "on": "page", "at_most": None, "columns": None}),
    "join_rows": lambda views: (
        views.limit("page").join_rows,
        {"other": views.limit("page"), "on": "page", "columns": None},
    ),
    "semijoin public": lambda views: (views.semijoin, {"other": pl.DataFrame({"page": ["a"]}), "on": "page"}),
    "join public": lambda views: (
        views.join,
        {
            "other": pl.DataFrame({"page": ["a"], "n": [1]}),
            "on": "page",
            "how": "left",
            "columns": None,
            "result": None,
        },
    ),
    "join two": lambda views: (views.join, {"other": views, "left": "page", "right": "user", "at_most": 3}),
    "semijoin": lambda views: (views.semijoin, {"other": views, "on": "page"}),
    "antijoin": lambda views: (views.antijoin, {"other": views, "left": "page", "right": "user"}),
    "limit": lambda views: (views.limit, {"key": "page", "at_most": 1}),
    "partition": lambda views: (views.partition, {"key": "page", "parts": ["a", "b"]}),
    "window": lambda views: (views.window, {"length": "1h", "at": "at", "zone": None}),
    "shave": lambda views: (views.shave, {"thickness": 1, "name": "index"}),
    "shave by": lambda views: (views.shave, {"thickness": lambda n: n, "name": "index", "step": 1}),
    "distinct": lambda views: (views.distinct, {"at_most": 1}),
    "concat": lambda views: (views.concat, {"other": views}),
    "union": lambda views: (views.union, {"other": views}),
    "intersect": lambda views: (views.intersect, {"other": views}),
    "subtract": lambda views: (views.subtract, {"other": views}),
}  # fmt: skip
"""Each operator with arguments that it takes, of records with user, page, x, n and at; `at_most` is of people."""


def source(name, fine=True, records=()):
    return protected(records, name=name, fine=fine, a="integer", b="integer")


def apply(name, *given):
    arity, step = (STEPS | UNITS)[name]
    return step(*given[:arity]).map(lambda x, y: (x, y), columns=["a", "b"])


trees = st.recursive(
    st.sampled_from(["left", "right"]),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(sorted(UNARY)), inner),
        st.tuples(st.sampled_from(sorted(BINARY)), inner, inner),
    ),
    max_leaves=4,
).filter(lambda tree: not isinstance(tree, str))
"""Plans of several steps over two sources, as names."""


def grow(tree, sources):
    """The collection that a tree of names describes."""
    if isinstance(tree, str):
        return sources[tree]
    return apply(tree[0], *(grow(one, sources) for one in tree[1:]))


def names(tree):
    return {tree} if isinstance(tree, str) else {tree[0]}.union(*map(names, tree[1:]))


SLACK = Fraction(2**12 + 1, 2**12)
"""For dithered plans: their bound of 1 + 2^-16 is for neighbours at a distance of 1, and tests try nearer ones."""
