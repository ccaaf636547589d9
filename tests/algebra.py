"""Random plans of the steps of `wpinq.testing.checks.steps`, one or more for each operator, and what they must hold.

A contract test that covers all operators follows from one line there, and a sample of each step for the test of
fingerprints.
"""

from fractions import Fraction

from hypothesis import strategies as st
from strategies import protected

from wpinq.testing.checks.steps import BINARY, CALLS, PAIR, PRICES, UNARY, WHOLE

__all__ = ["BINARY", "CALLS", "PAIR", "PRICES", "UNARY", "WHOLE"]

STEPS = {name: (1, step) for name, step in UNARY.items()} | {name: (2, step) for name, step in BINARY.items()}
HEAVY = {"shave", "shave: thin", "shave: sequence", "shave: by record", "shave: by number", "shave: twice"}
"""Their output grows with weights, so they are tried on small weights only."""


UNITS = {name: (1, step) for name, step in WHOLE.items()}


def source(name, fine=True, records=()):
    return protected(records, name=name, fine=fine, a="integer", b="integer")


def apply(name, *given):
    arity, step = (STEPS | UNITS)[name]
    return step(*given[:arity]).map(lambda x, y: (x, y), columns=["a", "b"])


trees = st.recursive(
    st.sampled_from(["left", "right"]),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(sorted(UNARY)), inner), st.tuples(st.sampled_from(sorted(BINARY)), inner, inner)
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
