"""Every operator as a step from pairs of integers to pairs of integers, and random plans of several of them.

A contract test that covers all operators follows from one line here.
"""

from fractions import Fraction

from hypothesis import strategies as st
from strategies import protected

PAIR = {"a": int, "b": int}


def swap(a, b):
    return (b, a)


def halve(a, b):
    return (a // 2, b)


UNARY = {
    "map: swap": lambda c: c.map(swap),
    "map: merge": lambda c: c.map(halve),
    "map: plain": lambda c: c.map(lambda a, b: (a if b > 0 else -a, 10 // b), columns=PAIR),
    "filter": lambda c: c.filter(lambda a, b: a < b),
    "shave": lambda c: c.shave().map(lambda a, b, index: (a, index)),
    "shave: thin": lambda c: c.shave("0.5").map(lambda a, b, index: (index, b)),
    "shave: sequence": lambda c: c.shave([1, "1/3", 2]).map(lambda a, b, index: (b, index)),
    "shave: twice": lambda c: c.shave().map(lambda a, b, index: index).shave(),
    "distinct": lambda c: c.distinct(),
}
BINARY = {
    "concat": lambda c, d: c.concat(d),
    "subtract": lambda c, d: c.subtract(d),
    "union": lambda c, d: c.union(d),
    "intersect": lambda c, d: c.intersect(d),
    "join": lambda c, d: c.join(d, on="a").map(lambda b, b_2: (b, b_2)),
    "join: result": lambda c, d: c.join(d, left="b", right="a", result=lambda b, b_2: (b, b_2)),
    "join: function": lambda c, d: c.join(d, on=halve, result=lambda key_1, b: (key_1, b)),
}
STEPS = {name: (1, step) for name, step in UNARY.items()} | {name: (2, step) for name, step in BINARY.items()}
HEAVY = {"shave", "shave: thin", "shave: sequence", "shave: twice"}
"""Their output grows with weights, so they are tried on small weights only."""


def source(name, fine=True, records=()):
    return protected(records, name=name, fine=fine, a="integer", b="integer")


def apply(name, *given):
    arity, step = STEPS[name]
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
