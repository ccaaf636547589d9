"""Names of the heaviest keys: the law of the choices, what they cost a unit, and which question is which."""

from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import permutations, product

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

import wpinq
from wpinq.aggregates.heavy_hitters import Peeled, peel
from wpinq.core.noise import Words
from wpinq.core.noise.exponential import PermuteAndFlip

KEYS = ["a", "b", "c", "d"]


def views(counts=(("a", 5), ("b", 30), ("c", 12)), **how):
    rows = [(f"{key}{i}", key) for key, n in counts for i in range(n)]
    return wpinq.protect(rows, budget=10**6, columns={"user": str, "page": str}, **how)


@cache
def chances(losses, rate):
    """Permute-and-flip by its definition: in each of all orders, the first whose coin says so."""
    take = [(-Decimal(rate.numerator) / rate.denominator * (loss - min(losses))).exp() for loss in losses]
    found, orders = [Decimal(0)] * len(losses), list(permutations(range(len(losses))))
    for order in orders:
        missed = Decimal(1)
        for one in order:
            found[one] += missed * take[one] / len(orders)
            missed *= 1 - take[one]
    return found


@cache
def law(weights, rate, k):
    """The probability of each sequence of k choices."""
    found = {}
    for order in permutations(range(len(weights)), k):
        left, chance = list(range(len(weights))), Decimal(1)
        for one in order:
            chance *= chances(tuple(max(weights) - weights[j] for j in left), rate)[left.index(one)]
            left.remove(one)
        found[order] = chance
    return found


UNITS = {
    "record": (wpinq.Unit(), 1, [1]),
    "person": (wpinq.users("user", at_most=3), 1, [3]),
    "one of each page": (wpinq.users("user", at_most=5, per=("page", 1)), 3, [1]),
    "two of each page": (wpinq.users("user", at_most=20, per=("page", 2)), 2, [1, 2]),
}


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_costs_at_most_epsilon_and_the_bound_is_tight(unit):
    """Exactly, for all sequences of choices among three keys, however one unit moves them: who comes lowers none.

    The rate is that of the charged question. Twice of it is refused, so this fails if it is."""
    worst, most = lost(views(unit=UNITS[unit][0]), *UNITS[unit], ups_alone=True)
    assert worst <= most * (1 + Decimal("1e-20"))
    assert worst * 2 > most


def test_a_unit_that_raises_and_lowers_costs_at_most_epsilon_too():
    """What is subtracted falls where more comes: F is 2 B again. With F = B this would be twice epsilon."""
    declared = wpinq.users("user", at_most=5, per=("page", 1))
    plan = views(unit=declared)
    plan = plan.subtract(plan.filter("page = 'none'"))
    worst, most = lost(plan, wpinq.users("user", at_most=10), 1, [2], ups_alone=False)
    assert worst <= most * (1 + Decimal("1e-20"))
    assert worst * 2 > most


def lost(plan, declared, k, moves, *, ups_alone):
    """What the choices of a plan lose at the most, and what they may."""
    epsilon = Fraction(1)
    asked = plan.top("page", k, epsilon, KEYS).measurements[0]
    assert isinstance(asked, Peeled)
    rate, worst = asked._chooser.rate, Decimal(0)
    with localcontext() as context:
        context.prec = 40
        for weights in product(range(4), repeat=3):
            before = law(weights, rate, min(k, 2))
            for move in moves:
                for change in product((-move, 0, move), repeat=3):
                    if ups_alone and min(change) < 0 < max(change):
                        continue
                    if sum(map(abs, change)) <= declared.bound:
                        after = law(tuple(w + d for w, d in zip(weights, change, strict=True)), rate, min(k, 2))
                        worst = max(worst, *(abs((after[one] / before[one]).ln()) for one in before))
    most = epsilon * min(k, 2) / k
    return worst, most.numerator / Decimal(most.denominator)


def test_choices_have_the_law_that_they_should():
    """3,000 draws of two of four; two-sided binomial tails at 1e-8 for 12 sequences: false alarm 2.4e-7, if drawn."""
    weights, rate, size = np.array([5, 3, 4, 5]), Fraction(1, 2), 3000
    ids = np.arange(8, dtype=np.uint64).reshape(4, 2)
    drawn = Counter(
        tuple(peel(PermuteAndFlip(rate), Words(n.to_bytes(32, "little")), ids, weights, 2)) for n in range(size)
    )
    for order, chance in law(tuple(weights.tolist()), rate, 2).items():
        assert binom.cdf(drawn[order], size, float(chance)) > 1e-8
        assert binom.sf(drawn[order] - 1, size, float(chance)) > 1e-8


@pytest.mark.parametrize("how", [{}, {"unit": wpinq.users("user", at_most=20, per=("page", 1))}])
def test_much_epsilon_tells_the_truth(how):
    collection = views(**how)
    for k, wanted in ((1, ["b"]), (2, ["b", "c"]), (4, ["b", "c", "a", "d"])):
        assert collection.top("page", k, 10**4, KEYS).frame["page"].to_list() == wanted
    assert collection.mode("page", 10**4, ["d", "a"]).value == "a"
    assert collection.map("page").shave().top(["page", "index"], 1, 10**5, [("d", 1), ("b", 4)]).rows == (("b", 4),)
    shared = collection.map(lambda user, page: (page, 1), columns={"page": object, "one": int})
    assert shared.mode("page", 10**4, KEYS).value == "b"
    counted = collection.top("page", 2, 10**4, KEYS, counts=10**4).frame
    assert counted.columns == ["page", "count", "low", "high"]
    assert counted["count"].to_list() == [30, 12]
    assert "count" not in collection.top("page", 2, 10**4, KEYS).frame.columns


def test_counts_are_of_the_chosen_and_charged_with_them():
    collection = views()
    answer = collection.top("page", 2, 1, KEYS, counts="0.5")
    assert answer.cost["epsilon"] == 1.5 == float(collection.budget.spent)
    cells = answer.table(0.9)
    counts = collection.map("page").measure("0.5", name="counts of top(page, 2)")
    assert cells["count"].to_list() == counts.observe_many(cells["page"]).tolist()
    assert cells["high"][0] - cells["count"][0] == counts.interval(0.9)
    assert collection.left == 10**6 - Fraction(3, 2), "the counts are the same question"


def test_keys_and_their_number_are_the_question_and_their_order_is_not():
    """Other keys would tell the second of all for nothing: the heaviest of the keys without the first."""
    collection = views(unit=wpinq.users("user", at_most=9, per=("page", 1)))
    found = collection.top("page", 2, 1, KEYS)
    again = [
        collection.top("page", 2, 1, keys)
        for keys in (KEYS[::-1], [*KEYS, "a"], pl.Series(KEYS), pl.DataFrame({"page": KEYS})["page"])
    ]
    assert {one.rows for one in again} == {found.rows}
    assert collection.budget.spent == 1
    for spent, (k, keys) in enumerate([(2, KEYS[1:]), (1, KEYS), (2, [*KEYS, "e"])], 2):
        collection.top("page", k, 1, keys)
        assert collection.budget.spent == spent
    assert collection.top("page", 2, 1, KEYS, name="again").measurements[0].question != found.measurements[0].question


def test_many_of_all_are_told_from_one_measurement():
    """Of records one measurement tells all counts at the price of one, so the best of several are read off it."""
    collection = views()
    pages = collection.map("page").measure(1)
    found = collection.top("page", 3, 1, KEYS)
    assert collection.budget.spent == 1
    noisy = dict(zip(KEYS, pages.observe_many(KEYS), strict=True))
    assert [page for (page,) in found.rows] == sorted(KEYS, key=noisy.get, reverse=True)[:3]
    assert isinstance(collection.top("page", 1, 1, KEYS).measurements[0], Peeled)


def test_the_same_choice_after_a_restart(tmp_path):
    def ask():
        collection = views(
            version="1", name="views", ledger=tmp_path / "ledger", unit=wpinq.users("user", at_most=50, per=("page", 1))
        )
        return collection.top("page", 3, "0.01", KEYS).rows, collection.budget.spent

    assert ask() == ask()


def test_keys_that_were_selected():
    collection = views()
    chosen = collection.map("page").select(100, delta=1e-6)
    assert collection.mode("page", 10**3, chosen).value == "b"


def test_of_a_stream_the_epoch_that_closes_answers():
    live = wpinq.live(columns=["page"], budget=100)
    asked = live.mode("page", 50, KEYS)
    live.send([("c",)] * 3 + [("a",)])
    live.advance()
    assert asked.value == "c"


@pytest.mark.parametrize("k", [0, 5, -1, 10**400], ids=["0", "5", "-1", "huge"])
def test_as_many_as_there_are_keys(k):
    collection = views()
    with pytest.raises(wpinq.PlanError, match="takes 1 to 4"):
        collection.top("page", k, 1, KEYS)
    with pytest.raises(wpinq.PlanError, match=r"top\(columns=\.\.\.\): no column 'pge'"):
        collection.top("pge", 1, 1, KEYS)
    with pytest.raises(wpinq.BinError):
        collection.top("page", 1, 1, [1, 2])
    assert collection.budget.spent == 0


def test_no_two_choices_share_words():
    asked = []

    class Listening(Words):
        def pair(self, identities, number):
            asked.append(number)
            return super().pair(identities, number)

    ids = np.arange(80, dtype=np.uint64).reshape(40, 2)
    peel(PermuteAndFlip(Fraction(1, 9)), Listening(bytes(32)), ids, np.arange(40), 5)
    assert len(asked) == len(set(asked)) >= 10


def test_a_person_in_many_parts_loses_no_more_than_the_costliest_part():
    """One person has one record of its own page in each of 20 parts, of which one is charged: each choice is told."""
    unit = wpinq.users("user", at_most=20, per=("page", 1))
    records = wpinq.protect([], budget=1, unit=unit, columns={"user": str, "day": int, "page": int})
    lost = Decimal(0)
    for day, part in records.partition("day", range(20)).items():
        asked = part.mode("page", epsilon=1, keys=[day, -1]).measurements[0]
        without, own = (law((weight, 0), asked._chooser.rate, 1) for weight in (0, 1))
        lost += max(abs((own[one] / without[one]).ln()) for one in own)
    assert lost <= Decimal(1) + Decimal("1e-20")
    assert wpinq.budget(records).spent == 1
