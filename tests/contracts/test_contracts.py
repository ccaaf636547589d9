"""What every operator promises, and random plans of several: it is stable, it is computed as defined, a sum of changes
has the result of the changed collection, and every use of a source is paid. A broken operator breaks each of these."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import pytest
from algebra import HEAVY, PRICES, SLACK, STEPS, UNITS, apply, grow, names, source, trees
from depth import often, thin
from hypothesis import HealthCheck, assume, given, reject, settings, target
from hypothesis import strategies as st
from strategies import Driver, collections, distance, evaluate, expected, neighbours, records, run_flow, same

from wpinq.core import methods
from wpinq.core.operators.filter import Filter
from wpinq.core.operators.resolution import DITHER_STABILITY, fit_noise
from wpinq.core.plan.node import steps
from wpinq.core.plan.shapes import Keyed, Stateless
from wpinq.core.plan.stability import paths, sensitivities
from wpinq.errors import PlanError

RELAXED = settings(deadline=None, max_examples=often(40), suppress_health_check=list(HealthCheck))
every = pytest.mark.parametrize("name", sorted(STEPS | UNITS))
ARITY = {name: arity for name, (arity, _) in (STEPS | UNITS).items()}
every_of_two = pytest.mark.parametrize("name", sorted(name for name, arity in ARITY.items() if arity == 2))


@cache
def planned(name, *, fine):
    """The step over sources that it takes, of weights in quarters or of whole ones."""
    return apply(name, source("left", fine), source("right", fine))


def alone(name):
    """The step over sources that it takes, and what the test's weights, in quarters, are multiplied by."""
    fine = name not in UNITS
    return planned(name, fine=fine), 1 if fine else 4


def times(weights, factor):
    return {record: weight * factor for record, weight in weights.items()}


def test_every_exported_operator_is_under_contract():
    missing = set(methods.OPERATORS) - {name.split(":")[0] for name in STEPS} - {"at_most"}  # of people alone
    assert not missing, f"{sorted(missing)}: a line each in UNARY or BINARY of wpinq/testing/checks/steps.py"


def small(*inputs):
    return all(abs(weight) <= 20 for one in inputs for weight in one.values())


# ---- stability: the output moves no further than the inputs moved, times the stability of the paths


def check_stability(collection, before, after):
    root = fit_noise(collection._node)
    uses = {data.name: factor for data, factor in sensitivities(root).items()}
    met = [node.data.name for node in steps(root) if not node.inputs]
    allowed = sum((uses[n] * distance(b, a) for n, b, a in zip(met, before, after, strict=True)), Fraction(0))
    moved = distance(expected(collection, *before), expected(collection, *after))
    dithers = sum(node.stability[0] == DITHER_STABILITY for node in steps(root) if node.inputs)
    assert moved <= allowed * SLACK**dithers
    return float(moved / allowed) if allowed else 0.0


@st.composite
def close(draw):
    """Two collections of one key, of weights alike, that differ by a weight of one: where much can hang on little."""
    alike = st.sampled_from([Fraction(1), Fraction(1), Fraction(2), Fraction(-1), Fraction(1, 4)])
    of_one_key = st.sampled_from([(1, value) for value in range(-1, 4)])
    before = draw(st.dictionaries(of_one_key, alike, min_size=1, max_size=4))
    moved = draw(of_one_key)
    return before, {**before, moved: before.get(moved, Fraction(0)) + draw(st.sampled_from([1, -1]))}


@every
@settings(RELAXED, max_examples=often(60))
@given(data=st.data())
def test_stable(name, data):
    """All inputs move, or close ones and one alone; the search is drawn to what moves the output far."""
    plan, factor = alone(name)
    near = data.draw(st.booleans())
    pairs = [data.draw(close() if near else neighbours()) for _ in range(ARITY[name])]
    if near and len(pairs) > 1:
        still = data.draw(st.integers(0, 1))
        pairs[still] = (pairs[still][0],) * 2
    before, after = ([times(one, factor) for one in side] for side in zip(*pairs, strict=True))
    assume(name not in HEAVY | {*UNITS} or small(*before, *after))
    target(check_stability(plan, before, after))


def grown(tree, sources):
    """The plan of a tree; pairs of pairs may weigh more than is held, one tree in 60: these are left out."""
    try:
        return grow(tree, sources)
    except PlanError as refusal:
        assert "bits do not hold" in str(refusal)
        assert str(tree).count("'join") > 1
        assert "'join_rows" in str(tree)
        reject()


@RELAXED
@given(tree=trees, data=st.data())
def test_plans_are_stable(tree, data):
    plan = grown(tree, {"left": source("left"), "right": source("right")})
    used = [node for node in steps(plan._node) if not node.inputs]
    before, after = zip(*[data.draw(neighbours()) for _ in used], strict=True)
    assume(not names(tree) & HEAVY or small(*before, *after))
    check_stability(plan, before, after)


# ---- engine: bytewax on columns gives what the definitions say, for any number of shards

plain = st.lists(records, max_size=12)


def check_engine(make, left, right, shards):
    plan = make(source("left", False, left), source("right", False, right))
    given = {"left": left, "right": right}
    used = [node.data.name for node in steps(plan._node) if not node.inputs]
    counted = [{r: Fraction(given[n].count(r)) for r in given[n]} for n in used]
    assert same(run_flow(plan, shards), plan._node, expected(plan, *counted))


@every
@settings(deadline=None, max_examples=often(6, 2))
@given(left=plain, right=plain, shards=st.integers(1, 5))
def test_engine(name, left, right, shards):
    check_engine(lambda *given: apply(name, *given), left, right, shards)


@thin(2)
@every_of_two
@settings(deadline=None, max_examples=often(6, 2))
@given(left=plain, shards=st.integers(1, 5))
def test_engine_with_one_collection_on_both_sides(name, left, shards):
    check_engine(lambda given, _: apply(name, given, given), left, [], shards)


@settings(deadline=None, max_examples=often(15))
@given(tree=trees, left=plain, right=plain, shards=st.integers(1, 5))
def test_plans_in_the_engine(tree, left, right, shards):
    check_engine(lambda a, b: grown(tree, {"left": a, "right": b}), left, right, shards)


# ---- signs: what a later step may rely on is so

counts = st.dictionaries(records, st.integers(1, 3).map(Fraction), max_size=6)


@every
@settings(RELAXED, max_examples=often(10, 3))
@given(data=st.data())
def test_no_weight_is_negative_where_the_plan_says_so(name, data):
    """Over records, which are then read without the columns that nothing needs; also while records come and go."""
    plan = planned(name, fine=False)
    before, after = ([data.draw(counts) for _ in range(ARITY[name])] for _ in range(2))
    assert plan._node.nonnegative == (name != "subtract")
    assert not plan._node.nonnegative or min(evaluate(plan, *after).values(), default=0) >= 0
    changes = [
        {record: two.get(record, 0) - one.get(record, Fraction(0)) for record in {**one, **two}}
        for one, two in zip(before, after, strict=True)
    ]
    driver = Driver(plan)
    driver.feed(*before)
    driver.feed(*changes)
    assert same(driver.histogram, plan._node, expected(plan, *after))


# ---- changes: any splitting, order and undoing of the same changes ends where a fresh run ends


@st.composite
def histories(draw):
    """A weighted collection, and changes that sum to it: split, undone and in any order."""
    target = draw(collections)
    pieces = []
    for record, weight in target.items():
        part = Fraction(draw(st.integers(-8, 8)), 4)
        pieces += [{record: weight - part}, {record: part}]
    for record in draw(st.lists(records, max_size=2)):  # inserts, and one delete that undoes them
        pieces += [{record: Fraction(1, 4)}] * 3 + [{record: Fraction(-3, 4)}]
    return target, draw(st.permutations(pieces))


def check_changes(collection, target, changes, shards):
    driver = Driver(collection, shards)
    for change in changes:
        driver.feed(*change)
    driver.feed()
    assert same(driver.histogram, collection._node, expected(collection, *target))


def sides(data, count):
    drawn = [data.draw(histories()) for _ in range(count)]
    longest = max(len(changes) for _, changes in drawn)
    padded = [changes + [{}] * (longest - len(changes)) for _, changes in drawn]
    return [target for target, _ in drawn], list(zip(*padded, strict=True))


@every
@settings(RELAXED, max_examples=often(6, 2))
@given(data=st.data(), shards=st.integers(1, 3))
def test_changes(name, data, shards):
    plan, factor = alone(name)
    target, changes = sides(data, ARITY[name])
    target = [times(one, factor) for one in target]
    changes = [[times(one, factor) for one in change] for change in changes]
    assume(name not in HEAVY | {*UNITS} or small(*target, *(one for change in changes for one in change)))
    check_changes(plan, target, changes, shards)


@thin(2)
@every_of_two
@settings(RELAXED, max_examples=often(6, 2))
@given(data=st.data(), shards=st.integers(1, 3))
def test_changes_with_one_collection_on_both_sides(name, data, shards):
    target, changes = sides(data, 1)
    assume(name not in HEAVY or small(*target, *(one for change in changes for one in change)))
    left = source("left")
    check_changes(apply(name, left, left), target, changes, shards)


@settings(RELAXED, max_examples=often(12))
@given(tree=trees, data=st.data(), shards=st.integers(1, 3))
def test_plans_on_changes(tree, data, shards):
    plan = grown(tree, {"left": source("left"), "right": source("right")})
    used = [node for node in steps(plan._node) if not node.inputs]
    target, changes = sides(data, len(used))
    assume(not names(tree) & HEAVY or small(*target, *(one for change in changes for one in change)))
    check_changes(plan, target, changes, shards)


# ---- cost: a source that is used k times is paid k times


def uses(tree):
    """Counted on the names, not on the plan: how often each source is used, by the stability that each file states."""
    if isinstance(tree, str):
        return {tree: Fraction(1)}
    found = {}
    factors = PRICES.get(tree[0], (1, 1))
    for factor, one in zip(factors, tree[1:], strict=False):
        for name, count in uses(one).items():
            found[name] = found.get(name, 0) + count * factor
    return found


def check_cost(plan, tree):
    found = {data.name: Fraction(0) for data, _ in paths(plan._node)}
    for (data, _), factor in paths(plan._node).items():
        found[data.name] += factor / DITHER_STABILITY ** sum(
            DITHER_STABILITY in node.stability for node in steps(plan._node)
        )
    assert all(found[name] <= count for name, count in uses(tree).items())
    assert all(found[name] * SLACK >= count for name, count in uses(tree).items())


@RELAXED
@given(tree=trees)
def test_every_use_is_paid(tree):
    check_cost(grown(tree, {"left": source("left"), "right": source("right")}), tree)


def test_a_collection_with_itself_is_used_twice():
    left = source("left")
    for name, (arity, _) in STEPS.items():
        if arity == 2:
            (factor,) = set(paths(apply(name, left, left)._node).values())
            assert factor == sum(PRICES.get(name, (1, 1))), name


# ---- a broken operator breaks each of these


@dataclass(frozen=True, eq=False)
class Doubles(Filter):
    """Doubles weights and does not say so."""

    def define(self, *inputs):
        return {record: 2 * weight for record, weight in inputs[0].items()}


@dataclass(frozen=True, eq=False)
class Differs(Filter):
    """Computes something else than it defines."""

    def lower(self, needed):
        return Stateless(lambda batch: batch.scale(2))


class Rounds:
    """Halves each change, rounding it: ten inserts are not undone by one delete."""

    def __init__(self):
        self.pending = []

    def absorb(self, port, batch):
        from wpinq.core.records.batch import WEIGHT, Batch, pl

        self.pending.append(Batch(batch.frame.with_columns((pl.col(WEIGHT) / 2).floor().cast(pl.Int64)), batch.schema))

    def emit(self):
        from wpinq.core.records.batch import Batch

        found, self.pending = self.pending, []
        return Batch.concat(found, found[0].schema) if found else Batch.empty(self.schema)


@dataclass(frozen=True, eq=False)
class Forgets(Filter):
    """Rounds change by change."""

    def define(self, *inputs):
        units = {record: weight * self.resolution / 2 for record, weight in inputs[0].items()}
        return {record: Fraction(unit.__floor__(), self.resolution) for record, unit in units.items()}

    def lower(self, needed):
        def state(_):
            made = Rounds()
            made.schema = self.schema
            return made

        return Keyed((self.schema.names,), state)


@dataclass(frozen=True, eq=False)
class Free(Filter):
    """Is used and not paid."""

    @property
    def stability(self):
        return (Fraction(0),)


def broken(kind):
    def make(left, right):
        fine = left.filter(lambda a: a == a)._node
        return left._then(kind(left._node, fine.predicate))

    return make


RECORDS = [(1, 2), (1, 2), (3, 0)]


def test_a_broken_operator_is_found():
    left, right = source("left"), source("right")
    with pytest.raises(AssertionError):
        check_stability(broken(Doubles)(left, right), [{}], [{(1, 2): Fraction(1)}])
    with pytest.raises(AssertionError):
        check_engine(broken(Differs), RECORDS, [], 1)
    changes = [({(1, 2): Fraction(1, 4)},)] * 10 + [({(1, 2): Fraction(-10, 4)},)]
    with pytest.raises(AssertionError):
        check_changes(broken(Forgets)(left, right), [{}], changes, 1)
    with pytest.raises(AssertionError):
        check_cost(broken(Free)(left, right), ("filter", "left"))


def test_a_sound_operator_is_not():
    left, right = source("left"), source("right")
    check_stability(broken(Filter)(left, right), [{}], [{(1, 2): Fraction(1)}])
    check_engine(broken(Filter), RECORDS, [], 1)
    changes = [({(1, 2): Fraction(1, 4)},)] * 10 + [({(1, 2): Fraction(-10, 4)},)]
    check_changes(broken(Filter)(left, right), [{}], changes, 1)
    check_cost(broken(Filter)(left, right), ("filter", "left"))
