"""Gaussian noise of every epoch without a last one: how far a unit moves, the law of all answers, the same for ever."""

import math
from fractions import Fraction

import numpy as np
import pytest
from depth import deep
from hypothesis import given
from hypothesis import strategies as st
from measurements.test_factored import (
    ASKED,
    TINY,
    insist_on_covariances,
    insist_on_the_law,
    insist_on_the_same_for_ever,
    live,
)  # fmt: skip

import wpinq
from wpinq.core.noise import endless_sums
from wpinq.core.noise.endless_sums import Place, deviation, located, running_square, sum_square
from wpinq.core.noise.factored_sums import factors
from wpinq.core.noise.gaussian_curve import shift_of
from wpinq.errors import BudgetError, PlanError

FAR = 272
"""Epochs of the matrices: two segments."""


def released(last):
    """By what changes at each epoch move all that is released, in deviations of noise where one answer has 1."""
    rows, one, first = [], Fraction(1), 0
    while first < last:
        length = located(first + 1).length
        sums, held = factors(length), min(length, last - first)
        away = np.subtract.outer(np.arange(length), np.arange(length))
        row = sum(part * point ** np.maximum(away, 0) for part, point in zip(sums.parts, sums.points, strict=True))
        right = np.linalg.solve(np.where(away >= 0, row, 0), (away >= 0).astype(float))[:, :held]
        block = np.vstack([right / math.sqrt(running_square(one, length)), np.ones(held) / math.sqrt(sum_square(one))])
        rows.append(np.pad(block, ((0, 0), (first, last - first - held))))
        first += length
    return np.vstack(rows)


RELEASED = released(FAR)


def covariance(square, epochs, spare):
    """Of the answers at some epochs, by the definition."""
    found = np.zeros((len(epochs), len(epochs)))
    for i, first in enumerate(map(located, epochs)):
        for j, second in enumerate(map(located, epochs)):
            found[i, j] = min(first.segment, second.segment) * float(sum_square(square, spare))
            if first.segment > second.segment or first.segment < second.segment:
                continue
            sums = factors(first.length)
            rows = [sum(part * point ** np.arange(at.epoch)[::-1] for part, point in
                        zip(sums.parts, sums.points, strict=True)) for at in (first, second)]  # fmt: skip
            least = min(map(len, rows))
            found[i, j] += float(running_square(square, first.length)) * float(rows[0][:least] @ rows[1][:least])
    return found + np.eye(len(epochs)) / 12


# ------------------------------------------------------------------ how far a unit moves


def test_segments_follow_one_another_and_hold_every_epoch():
    before = Place(0, 16, 0)
    for epoch in range(1, 80_000):
        at = located(epoch)
        expected = (before.segment, before.epoch + 1) if before.epoch < before.length else (before.segment + 1, 1)
        assert (at.segment, at.epoch) == expected
        before = at
    first = sum(16**power for power in range(1, 5))
    for number in (0, 1, 7):
        assert located(first + number * 2**20 + 1) == Place(4 + number, 2**20, 1)
        assert located(first + (number + 1) * 2**20) == Place(4 + number, 2**20, 2**20)


def test_no_epoch_moves_what_is_released_by_more_than_one_answer():
    longest = (released(FAR) ** 2).sum(axis=0)
    assert longest.max() <= 1 + 1e-9
    assert longest.max() > 1 - 1e-5, "no noise is wasted"


@given(st.lists(st.tuples(st.integers(0, FAR - 1), st.integers(0, 2), st.integers(-3, 3)), max_size=12))
def test_a_unit_moves_all_of_it_no_further_than_one_answer(changes):
    """Of changes of several bins at any epochs: no further than S B, squared, whatever their signs."""
    moved = np.zeros((FAR, 3))
    sizes = np.zeros(3)
    for epoch, one, weight in changes:
        moved[epoch, one] += weight
        sizes[one] += abs(weight)
    assert np.sum((RELEASED @ moved) ** 2) <= sizes.sum() * sizes.max() + 1e-6


@pytest.mark.parametrize("wrong", ["SHARE of both is one", "no more for a longer column"])
def test_noise_that_pays_too_little_is_found(monkeypatch, wrong):
    if wrong == "SHARE of both is one":
        monkeypatch.setitem(globals(), "sum_square", lambda square: square)
    else:
        monkeypatch.setitem(globals(), "running_square", lambda square, _: square / endless_sums.SHARE)
    with pytest.raises(AssertionError):
        test_no_epoch_moves_what_is_released_by_more_than_one_answer()


def test_the_noise_pays_for_all_moves_of_a_unit_once():
    live = wpinq.live({"user": "text", "page": "text"}, budget=1, delta=TINY, unit=wpinq.users("user", at_most=8))
    quote = live.map("page").quote(**ASKED)
    live.close()
    needed = (8 / shift_of(Fraction(1), Fraction(TINY))) ** 2
    assert quote.mechanism.square == needed and quote.query.times.noise._spare == 2
    (paid,) = [cost for _, charge in quote.charges for cost in charge.costs]
    assert (paid.epsilon, paid.delta, paid.rho, paid.under) == (1, Fraction(TINY), 0, ())


def test_parts_of_a_partition_are_each_charged():
    """They are no parallel questions: a delta of each holds for all that its records move."""
    views = live()
    parts = views.partition("page", [0, 1])
    for part in (0, 1):
        parts[part].measure(**ASKED)
    assert views._data.ledger.spent() == (2, 2 * Fraction(TINY))
    views.close()


@deep
def test_no_variance_is_above_the_room_that_is_refused_beyond():
    longest = running_square(Fraction(1), endless_sums.LONGEST)
    assert max(longest, sum_square(Fraction(1))) < endless_sums.ROOM


@pytest.mark.parametrize(("last", "bar"), [(10**3, 29), (10**4, 39)])
def test_it_is_nearer_than_a_binary_tree_with_gaussian_noise(last, bar):
    """Whose mean deviation is this, though it knows its last epoch; ours is below it at every epoch."""
    shift, levels, epochs = shift_of(Fraction(1), Fraction(TINY)), last.bit_length(), np.arange(1, last + 1)
    nodes = sum((epochs >> level) & 1 for level in range(levels))
    tree = float(np.sqrt(levels * nodes).mean() / shift)
    assert bar < tree < bar + 1
    assert max(deviation(1 / shift**2, epoch) for epoch in range(1, last + 1, 9)) < tree * 0.75


# ------------------------------------------------------------------ the law


def test_all_answers_have_the_law_of_the_sums():
    views, at = live(), [1, 9, 16, 17, 30, 40]
    measured = views.measure(**ASKED)
    for _ in range(40):
        views.advance()
    true = covariance(measured.quote.mechanism.square, at, measured.times.noise._spare)
    assert np.allclose(np.sqrt(np.diag(true)), [measured.stddev(epoch) for epoch in at])
    insist_on_the_law(measured, at, true)
    views.close()


def test_noise_after_several_ended_segments_has_the_law_of_the_sums():
    """Of 1,500 bins, without waiting for the epochs; each covariance fails for one key in 10^5."""
    views, bins, at = live(), 1500, [250, 272, 273, 300]
    measured = views.measure(**ASKED)
    ids = np.random.default_rng(1).integers(0, 2**63, (bins, 2)).astype(np.uint64)
    noise = np.stack([measured.times.noise.draw(epoch, ids) for epoch in at]).astype(float)
    insist_on_covariances(noise, covariance(measured.quote.mechanism.square, at, measured.times.noise._spare))
    views.close()


# ------------------------------------------------------------------ for ever


def test_it_is_the_same_in_whatever_order_and_after_a_restart(tmp_path):
    insist_on_the_same_for_ever(tmp_path, (19, 7, 16, 17, 9), **ASKED)


def test_it_shares_no_noise_with_other_names_and_horizons():
    views = live()
    made = [views.measure(**ASKED), views.measure(**ASKED, name="other"), views.measure(**ASKED, horizon=16)]
    views.advance()
    found = np.stack([one.observe_many(range(300)) for one in made]).astype(float)
    assert np.abs(np.corrcoef(found) - np.eye(3)).max() < 0.3
    views.close()


def test_what_does_not_fit_is_refused_before_any_charge():
    views = live()
    with pytest.raises(PlanError, match="name the noise"):
        views.measure(**{**ASKED, "mechanism": "best"})
    with pytest.raises(PlanError, match="not linear"):
        views.shave().measure(**ASKED)
    with pytest.raises(BudgetError):
        views.measure(**{**ASKED, "epsilon": 11})
    assert views._data.ledger.spent() == (0, 0)
    views.close()
    curves = wpinq.live({"page": "integer"}, rho=1, delta="1e-5")
    for asked in (ASKED, {"rho": "0.1", "mechanism": "gaussian", "continual": True}):
        with pytest.raises(PlanError, match="divergences"):
            curves.measure(**asked)
    curves.close()


@pytest.mark.parametrize("further", [{}, {"horizon": 100}, {"mechanism": "geometric", "delta": None}])
def test_the_law_is_shown_before_and_after_the_charge(capsys, further):
    """A quote says how wide the noise is at epochs, and not how wide that of one answer would be."""
    views = live()
    quote = views.quote(**{**ASKED, **further})
    text = str(quote)
    assert "probability 0.95" not in text and "continual=True" in text
    assert views._data.ledger.spent() == (0, 0)
    made = views.measure(quote=quote)
    assert f"{made.times.noise.deviation(100):,.4g} at epoch 100" in text
    assert text.splitlines()[1].strip() in made.explain() and capsys.readouterr().out
    views.close()
