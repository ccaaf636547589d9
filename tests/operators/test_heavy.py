"""Weights that are as heavy as a plan lets them be: what is computed is the definition, in 64 bits and in 128.

Sources are fed 2^40 records, all that they may hold, as a few records with counts; a column of weights and sums of a
collection with itself bring gain times resolution just below where 64 bits end, or 128 do.
"""

import math
from fractions import Fraction

import pytest
import strategies
from algebra import BINARY, HEAVY, SLACK, UNARY, grow, source
from depth import often
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import Driver, distance, expected, protected, same

from wpinq.collection import Collection
from wpinq.core.engines import reference
from wpinq.core.operators.contribution.weight import weigh
from wpinq.core.operators.resolution import GRID, fit_noise
from wpinq.core.plan.node import steps
from wpinq.core.plan.stability import sensitivities
from wpinq.core.records.weights import CAPACITY, NARROW, WIDE, WeightType
from wpinq.errors import PlanError

FEW = settings(deadline=None, max_examples=often(60))


def thick(collection):
    """Few slices, whatever a record weighs."""
    thickness = math.ceil(collection._node.gain * CAPACITY / 3)
    return collection.shave([thickness // 2 or 1, thickness or 1]).map(lambda a, b, index: (a, index))


LIGHT = {name: step for name, step in UNARY.items() if name not in HEAVY} | {"shave: thick": thick}
STEPS = sorted(LIGHT) + sorted(BINARY)
trees = st.recursive(
    st.sampled_from(["left", "right"]),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(sorted(LIGHT)), inner), st.tuples(st.sampled_from(sorted(BINARY)), inner, inner)
    ),
    max_leaves=3,
)


def grown(tree, sources):
    if isinstance(tree, str):
        return sources[tree]
    given = [grown(one, sources) for one in tree[1:]]
    if tree[0] in LIGHT:
        return LIGHT[tree[0]](*given).map(lambda x, y: (x, y), columns=["a", "b"])
    return grow((tree[0], "left", "right"), dict(zip(("left", "right"), given, strict=True)))


def heavy(name, most, doubled):
    """A source whose records weigh up to `most`, added to itself so often."""
    records = protected(name=name, a="integer", b="integer", w="integer")
    found = Collection(weigh(records._node, "w", max_weight=most))
    for _ in range(doubled):
        found = found.concat(found)
    return found


@st.composite
def fed(draw, most):
    """At most 2^40 records of few kinds, of weights that are as large as they may be, or small; and one kind more."""
    weight = st.sampled_from([most, -most, most - 1, 1, -1, 2 * most])
    rows = draw(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), weight), min_size=1, max_size=4, unique=True))
    shares = draw(st.lists(st.integers(1, 10), min_size=len(rows), max_size=len(rows)))
    counts = [Fraction(CAPACITY * share // sum(shares)) for share in shares]
    found = dict(zip(rows, counts, strict=True))
    found[rows[0]] += CAPACITY - sum(counts)
    return found


def edges():
    """Largest weights and doublings around both ends: where 64 bits are left, and where 128 are."""
    near = [(1, 0), (2**10, 5), (2**21, 0), (2**22 - 1, 0), (2**22, 0), (2, 20), (2**30, 0), (2**52, 0), (2**52, 31)]
    return st.sampled_from(near)


def sizes(weights):
    return sum(map(abs, weights.values()), Fraction(0))


@FEW
@given(trees, edges(), st.data())
def test_the_heaviest_weights_are_computed_exactly(tree, edge, data):
    left, right = (heavy(name, *edge) for name in ("left", "right"))
    try:
        plan = grown(tree, {"left": left, "right": right})
    except PlanError as error:
        assert "do not hold" in str(error)
        assume(False)
    found = strategies.leaves(plan)
    changes = [data.draw(fed(edge[0])) for _ in found]
    driver = Driver(plan, shards=data.draw(st.integers(1, 2)))
    part = [{record: count // 3 + 1 for record, count in change.items()} for change in changes]
    rest = [{r: change[r] - early[r] for r in change} for change, early in zip(changes, part, strict=True)]
    driver.feed(*part)
    assert same(driver.histogram, plan._node, expected(plan, *part))
    driver.feed(*rest)
    assert same(driver.histogram, plan._node, expected(plan, *changes))


@FEW
@given(trees, edges(), st.data())
def test_one_record_less_among_the_heaviest_moves_a_plan_by_its_stability(tree, edge, data):
    left, right = (heavy(name, *edge) for name in ("left", "right"))
    try:
        plan = grown(tree, {"left": left, "right": right})
    except PlanError:
        assume(False)
    leaves = strategies.leaves(plan)
    changes = [data.draw(fed(edge[0])) for _ in leaves]
    moved = data.draw(st.integers(0, len(leaves) - 1))
    row = data.draw(st.sampled_from(sorted(changes[moved])))
    fewer = [dict(change) for change in changes]
    fewer[moved][row] -= 1
    outputs = []
    for given_ in (changes, fewer):
        driver = Driver(plan)
        driver.feed(*given_)
        outputs.append(expected(plan, *given_))
        assert same(driver.histogram, plan._node, outputs[-1])
    assert distance(*outputs) <= sensitivities(fit_noise(plan._node))[leaves[moved].data] * SLACK


@FEW
@given(trees, strategies.collections, strategies.collections)
def test_no_step_outweighs_its_gain(tree, left, right):
    """By how much a step's records weigh at the most: for each weight of 1 at every source, its gain."""
    plan = grown(tree, {"left": source("left"), "right": source("right")})
    leaves = strategies.leaves(plan)
    given_ = dict(zip(leaves, [dict(left), dict(right)], strict=False))
    most = max(map(sizes, given_.values()))
    nodes = steps(fit_noise(plan._node))
    for node, found in zip(nodes, reference.run_reference(nodes, given_), strict=True):
        assert sizes(found) <= node.gain * most + Fraction(len(found), GRID)


def test_the_width_follows_from_gain_and_resolution():
    whole = protected(a="integer", b="integer")
    assert whole._node.held == WeightType(1) and whole._node.held.whole
    words = whole.flat_map(lambda a, b: [a, b])
    assert words._node.held == WeightType(720_720)  # ordinary plans stay in 64 bits
    doubled = whole
    for _ in range(21):
        doubled = doubled.concat(doubled)
    assert doubled._node.gain == 2**21 and not doubled._node.held.wide
    wide = doubled.concat(doubled)._node
    assert wide.gain * wide.resolution == NARROW and wide.held == WeightType(1, wide=True) and not wide.held.whole
    assert doubled.group_by("a", len)._node.gain == 2**20
    assert doubled.limit("a")._node.gain == 2**21
    assert (
        doubled.join(whole, on="a")._node.gain
        == Fraction(2**21 + 1, 4) * doubled.join(whole, on="a")._node.stability[0]
    )


def test_what_128_bits_do_not_hold_is_refused_before_anything_is_charged():
    found = protected(a="integer", b="integer")
    for _ in range(85):
        found = found.concat(found)
    assert found._node.gain * found._node.resolution == WIDE // 2
    for more in (
        lambda: found.concat(found),
        lambda: found.union(found),
        lambda: found.flat_map(lambda a, b: [a, b]),
        lambda: found.shave(["1/2", 2**80]),
        lambda: found.join(found, on="a").concat(found.join(found, on="a")),
    ):
        with pytest.raises(PlanError, match=r"one record can weigh about 2\^.*128 bits do not hold.*max_weight="):
            more()
    ledger = strategies.leaves(found)[0].data.ledger
    with pytest.raises(PlanError):
        found.measure(1)
    assert ledger.spent()[0] == 0
