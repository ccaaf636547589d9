"""Names of people who have many: whose pairs are their own, what noise and thresholds hide, and who is found."""

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from depth import thin
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm
from strategies import evaluate

import wpinq
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.measurements.select import WeightedSelection, pairs_of
from wpinq.core.noise import Words, gaussian_curve, weighted_rounds
from wpinq.core.noise.gaussian_tails import tail_bounds
from wpinq.core.noise.selection import selection
from wpinq.core.noise.weighted_rounds import UNIT, OfRound, threshold, weights
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.plan.stability import Survey

ONE, TINY = Secret(bytes(range(32))), "1e-6"
COLUMNS = {"user": str, "page": str, "age": int}
UNIT_OF = wpinq.users("user", at_most=6)


def views(records=(), unit=UNIT_OF, **promise):
    promise = promise or {"budget": 10**6, "delta": "0.9"}
    return wpinq.protect(list(records), secret=ONE, version="1", unit=unit, columns=COLUMNS, name="views", **promise)


OWN = {
    "pages": lambda v: v.map("page"),
    "pages and ages": lambda v: v.map("age, page"),
    "distinct": lambda v: v.map("user, page").distinct().map("page"),
    "some": lambda v: v.filter("age > 0").map("page"),
    "computed": lambda v: v.map("user, age + 1 AS b, page").map("b, page"),
    "two": lambda v: v.map("user, page").limit("user", 2).map("page"),
    "renamed": lambda v: v.map("user, page AS p").map("p"),
    "twice": lambda v: v.map("user, page").concat(v.map("user, page")).map("page"),
}
NOT = {
    "shared out": lambda v: v.flat_map(
        lambda user, page: [(user, page), (user, "all")], columns={"user": str, "p": str}
    ).map("p"),
    "another key": lambda v: v.limit("page", 2).map("page"),
    "no choice": lambda v: v.map(lambda page: page[:1]),
    "the person": lambda v: v.map("user"),
    "parts": lambda v: v.partition("age", [1, 2])[1].map("page"),
    "groups of others": lambda v: v.map("page, age").group_by("page", len).map("page"),
}


def survey(collection):
    return Survey.of(fit_noise(collection._node))


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 2)), max_size=10),
    st.lists(st.tuples(st.sampled_from("uv"), st.sampled_from("abcd"), st.integers(0, 2)), max_size=8),
    st.sampled_from(sorted(OWN)),
)
def test_a_person_more_adds_pairs_of_their_own_alone(own, others, which):
    """By the definitions, on whole persons: the pairs of all others are as they were, and nobody has too many."""
    pairs = pairs_of(survey(OWN[which](views())))
    root = wpinq.Collection(pairs.survey.root)
    place = [root.columns.index(name) for name in pairs.person]
    with_, without = (evaluate(root, [*others, *(("ann", *one) for one in some)]) for some in (own, []))
    more = {pair: weight for pair, weight in with_.items() if weight != without.get(pair, 0)}
    assert without.items() <= with_.items()
    assert all([pair[i] for i in place] == ["ann"] for pair in more)
    assert len(more) <= pairs.most


@pytest.mark.parametrize("name", sorted(NOT))
def test_other_plans_have_the_usual_selection(name):
    assert pairs_of(survey(NOT[name](views()))) is None


@pytest.mark.parametrize("unit", [None, wpinq.users("user", shared=True)])
def test_other_units_have_pairs_only_where_they_are_proved(unit):
    found = pairs_of(survey(OWN["pages"](views(unit=unit))))
    assert found is None if unit is None else found.most >= 1


def test_a_ledger_of_divergences_has_the_usual_selection():
    assert pairs_of(survey(OWN["pages"](views(rho=1, delta="0.5")))) is None


# ------------------------------------------------------------------ noise and thresholds


@given(st.integers(1, 10**6))
def test_the_names_of_a_person_are_a_vector_of_length_one(many):
    (each,) = weights(np.array([many]))
    assert many * int(each) ** 2 <= UNIT**2
    assert int(each) >= UNIT / math.sqrt(many) - 1


@thin(3)
@pytest.mark.parametrize(("epsilon", "delta", "names"), [("1", TINY, 50), ("3", "1e-5", 7), ("0.1", "1e-3", 100)])
def test_the_rounds_hold_epsilon_and_half_of_delta(epsilon, delta, names):
    """The sum of the squares of the shifts, by the exact curve of the noise that discrete noise rounds."""
    epsilon, delta = Fraction(epsilon), Fraction(delta)
    found = weighted_rounds.weighted_rounds(epsilon, delta, names)
    bins = names * len(found.rounds)
    wider = (
        gaussian_curve.square_of(Fraction(1), bins, epsilon, delta) - 1 / gaussian_curve.shift_of(epsilon, delta) ** 2
    )
    squares = sum(UNIT**2 / (one.noise.square - wider) for one in found.rounds)
    shift, e = math.sqrt(squares), float(epsilon)
    lost = norm.cdf(shift / 2 - e / shift) - math.exp(e) * norm.cdf(-shift / 2 - e / shift)
    assert float(delta) / 2 * 0.999 < lost <= float(delta) / 2 * (1 + 1e-9)
    assert len(found.rounds) == (1 if names < weighted_rounds.MANY else 2)


@pytest.mark.parametrize("names", [1, 2, 9, 50])
def test_a_threshold_hides_whoever_has_up_to_so_many_names(names):
    """With exact tails, for every number of names; and it is hardly higher than need be."""
    square, delta = Fraction((3 * UNIT) ** 2), Fraction(1, 10**4)
    found = threshold(square, delta, names)

    def shown(tau):
        tails = ((many, int(each)) for many, each in enumerate(weights(np.arange(1, names + 1)), 1))
        return max(1 - (1 - tail_bounds(square, tau - each, 128)[1] / 2**128) ** many for many, each in tails)

    assert shown(found) <= delta < shown(found - UNIT // 5)
    assert found / UNIT > norm.isf(1e-4 / names) * 3, "a union bound over all names has to be in it"


def test_rounds_have_noise_of_their_own():
    """Of 20,000 names; a right one fails for one key in a million."""
    found, ids = weighted_rounds.weighted_rounds(Fraction(1), Fraction(TINY), 50), np.arange(40_000, dtype=np.uint64)
    one, other = (found.rounds[0].noise.draw(OfRound(Words(bytes(32)), place), ids.reshape(-1, 2)) for place in (0, 1))
    assert abs(np.corrcoef(one, other)[0, 1]) < 5 / math.sqrt(len(one))
    again = found.rounds[0].noise.draw(OfRound(Words(bytes(32)), 1), ids.reshape(-1, 2)[::-1])
    assert (again[::-1] == other).all()


# ------------------------------------------------------------------ answers


def zipf(people, names, most, seed):
    rng = np.random.default_rng(seed)
    heavy = -0.8 * np.log(np.arange(1, most + 1))
    rows = [np.argpartition(-(heavy + rng.gumbel(size=most)), names)[:names] for _ in range(people)]
    return pl.DataFrame({"user": np.repeat(np.arange(people), names), "item": np.concatenate(rows)})


def protected(frame, at_most=50, **given):
    return wpinq.protect(
        frame, budget=10**6, delta="0.9", unit=wpinq.users("user", at_most=at_most), version="1", **given
    )


def test_it_finds_ten_times_as_many_names_and_none_that_nobody_has(tmp_path):
    frame = zipf(800, 50, 2000, 3)
    items = protected(frame, ledger=tmp_path / "l").map("item")
    made = items.select(1, TINY)
    assert isinstance(made, WeightedSelection)
    found = set(made.bins["item"].to_list())
    counts = frame.group_by("item").len()["len"]
    usual = selection(Fraction(1), Fraction(TINY), 50)
    assert len(found) > 5 * sum(usual.places(one, 64) / 2**64 for one in counts.to_list())
    assert found < set(frame["item"].to_list())
    (paid,) = {(cost.epsilon, cost.delta) for _, charge in made.quote.charges for cost in charge.costs if cost.epsilon}
    assert paid == (1, 0) and items._node is not None
    again = protected(frame.reverse(), ledger=tmp_path / "l").map("item")
    spent = again._node and made.key_owner.ledger.spent()
    assert again.select(1, TINY).bins.equals(made.bins), "the order of records decides nothing"
    assert made.key_owner.ledger.spent() == spent == (1, Fraction(TINY))


def test_few_names_have_the_usual_selection():
    frame = zipf(50, 2, 30, 4)
    assert not isinstance(protected(frame, at_most=1).map("item").select(1, TINY), WeightedSelection)
    assert isinstance(protected(frame, at_most=50).map("item").select(1, TINY), WeightedSelection)


@pytest.mark.parametrize("own", [1, 20])
def test_names_of_one_person_alone_are_published_with_delta_at_most(own):
    """60 ledgers of one person; a right threshold fails for one set of secrets in a million."""
    frame = pl.DataFrame({"user": [0] * own, "item": list(range(own))})
    delta, shown = Fraction(1, 2), 0
    for turn in range(60):
        items = protected(frame, at_most=20, secret=Secret(turn.to_bytes(32, "big"))).map("item")
        made = items.select(1, delta)
        assert isinstance(made, WeightedSelection)
        shown += made.bins.height > 0
    assert shown <= binom.isf(1e-6, 60, float(delta) / 2)
    assert shown > 3 or own < 20, "and it is not much less"


def test_a_threshold_without_the_union_bound_is_found(monkeypatch):
    """A planted fault: each name hidden by itself. The test above has the power to see it."""
    monkeypatch.setattr(
        weighted_rounds, "threshold",
        lambda square, delta, names: UNIT + weighted_rounds.half_width(square, 1 - 2 * delta),
    )  # fmt: skip
    with pytest.raises(AssertionError):
        test_names_of_one_person_alone_are_published_with_delta_at_most(20)


def test_names_of_several_columns_odd_values_and_other_columns_names():
    rows = [(str(user), name, age) for user in range(300) for name, age in (("x", 1), (None, 2), ("x", 2))]
    found = views(rows).map("age, page AS name").select(5, TINY).bins
    assert found.columns == ["age", "name"]
    assert set(found.rows()) == {(1, "x"), (2, None), (2, "x")}


def test_records_of_one_name_count_once():
    """A thousand people with one record each are more than one person with all of them."""
    rows = [("ann", "a", i) for i in range(6)] + [(f"u{i}", "b", 0) for i in range(400)]
    found = views(rows).map("page").select(2, TINY)
    assert found.bins["page"].to_list() == ["b"]
