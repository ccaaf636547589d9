"""Gaussian noise of every epoch up to a horizon: how far a unit moves, the law of all answers, the same for ever."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from depth import deep
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import wpinq
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.noise import factored_sums
from wpinq.core.noise.factored_sums import PLACES, Running, Sums, exactly, factors
from wpinq.core.noise.gaussian_curve import shift_of
from wpinq.errors import BudgetError, NotReadyError, PlanError

TINY, TYPED = "1e-6", {"user": "text", "page": "text"}
ASKED = {"epsilon": 1, "delta": TINY, "mechanism": "gaussian", "continual": True}


def matrices(sums, size=None):
    """L, R and A, whole."""
    size = size or sums.horizon
    away = np.subtract.outer(np.arange(size), np.arange(size))
    row = sum(part * point ** np.maximum(away, 0) for part, point in zip(sums.parts, sums.points, strict=True))
    left, whole = np.where(away >= 0, row, 0), (away >= 0).astype(float)
    return left, np.linalg.solve(left, whole), whole


# ------------------------------------------------------------------ how far a unit moves


@pytest.mark.parametrize("horizon", [1, 2, 3, 7, 40, 500])
def test_the_longest_column_is_known_from_above_and_hardly_so(horizon):
    _, right, _ = matrices(factors(horizon))
    longest = (right**2).sum(axis=0).max()
    assert longest <= float(factors(horizon).square) <= longest * (1 + 1e-6)


@given(st.integers(1, 60), st.lists(st.integers(-3, 3), min_size=1, max_size=60))
def test_a_unit_moves_the_sums_no_further_than_its_changes(horizon, changes):
    """Of any changes at any epochs: R c is no longer than s times the sum of their sizes."""
    moved = np.zeros(horizon)
    moved[: len(changes)] = changes[:horizon]
    _, right, _ = matrices(factors(horizon))
    assert np.sum((right @ moved) ** 2) <= float(factors(horizon).square) * np.abs(moved).sum() ** 2 + 1e-9


def test_a_length_that_is_a_hundredth_too_small_is_found(monkeypatch):
    true = Sums.square.func
    monkeypatch.setattr(Sums, "square", property(lambda sums: true(sums) * Fraction(98, 100)))
    with pytest.raises(AssertionError):
        test_the_longest_column_is_known_from_above_and_hardly_so(40)


def test_the_noise_pays_for_all_moves_of_a_unit():
    """At the quoted variance the longest move is one of so many deviations as (1, 1e-6) allows."""
    unit = wpinq.users("user", at_most=8)
    live = wpinq.live(TYPED, budget=1, delta=TINY, unit=unit)
    quote = live.map("page").quote(**ASKED, horizon=300)
    live.close()
    moved = 8 * float(factors(300).square) ** 0.5
    assert moved / math.sqrt(quote.mechanism.square) == pytest.approx(float(shift_of(Fraction(1), Fraction(TINY))))
    (paid,) = [cost for _, charge in quote.charges for cost in charge.costs]
    assert (paid.epsilon, paid.delta, paid.rho, paid.under) == (1, Fraction(TINY), 0, ())


def test_deviations_are_20_at_most_for_a_hundred_thousand_epochs():
    sums, shift = factors(10**5), float(shift_of(Fraction(1), Fraction(TINY)))
    assert float(sums.square) ** 0.5 * sums.deviation(10**5) / shift < 20
    assert len(sums.points) < 30


@deep
def test_deviations_are_24_at_most_for_a_million_epochs():
    sums, shift = factors(10**6), float(shift_of(Fraction(1), Fraction(TINY)))
    assert float(sums.square) ** 0.5 * sums.deviation(10**6) / shift < 23.2


# ------------------------------------------------------------------ the law


def drawn(seed, size):
    rng = np.random.default_rng(seed)
    z, y = (np.rint(rng.normal(size=size) * 2**PLACES).astype(np.int64) for _ in range(2))
    return lambda rank, after, last: (y if rank else z)[after:last]


@pytest.mark.parametrize("square", [Fraction(1, 50), Fraction(80), Fraction(10**12, 7)])
def test_answers_are_rounded_sums_whichever_way_they_are_computed(square):
    size, draw = 5000, drawn(3, 5000)
    sums, running = factors(size), Running.begin(factors(size), square)
    for epoch in [1, 2, 3, 50, 51, 300, 4095, 4096, 4097, 5000]:
        found = running.at(epoch, draw)
        left = sum(part * point ** np.arange(epoch) for part, point in zip(sums.parts, sums.points, strict=True))
        near = math.sqrt(square) * float(left[::-1] @ draw(0, 0, epoch)) / 2**PLACES
        assert abs(found - near) <= 0.5 + 1e-6 * max(1, abs(near))
        if epoch < 400:
            assert found == exactly(sums, square, draw(0, 0, epoch).tolist(), draw(1, 0, epoch).tolist())


def test_sums_near_a_half_are_settled_by_finer_numbers():
    """One epoch, and a z that makes the sum a half to the last digit of floats: y decides."""
    sums, square = factors(1), Fraction(80)
    grid = math.sqrt(80) * float(sums.parts.sum()) / 2**PLACES
    half = round(0.5 / grid)
    asked = []

    def draw(sign, rank, after, last):
        asked.append(rank)
        return np.array([sign * 2**44 if rank else half], np.int64)

    found = []
    for sign in (1, -1):
        found.append(Running.begin(sums, square).at(1, partial(draw, sign)))
    assert found == [1, 0] and asked == [0, 0, 1, 0, 0, 1]


def live(**given):
    return wpinq.live({"page": "integer"}, budget=10, delta="1e-5", secret=Secret(bytes(range(32))), **given)


def insist_on_covariances(noise, true):
    """Each row is the noise of an epoch; each covariance is off by 5 deviations at most, for one key in 10^5."""
    bins = noise.shape[1]
    spread = np.sqrt((np.multiply.outer(np.diag(true), np.diag(true)) + true**2) / bins)
    assert (np.abs(noise @ noise.T / bins - true) < 5 * spread).all()


def insist_on_the_law(measured, at, true):
    """Covariances of some epochs over 1,500 bins, and intervals that hold as often as they say."""
    bins = 1500
    noise = np.stack([measured.observe_many(range(bins), epoch=epoch) for epoch in at]).astype(float)
    insist_on_covariances(noise, true)
    inside = np.abs(noise) <= np.array([[measured.interval("0.9", epoch=epoch)] for epoch in at])
    assert (inside.sum(axis=1) >= binom.ppf(1e-7, bins, 0.9)).all()
    assert (inside.mean(axis=1) < 0.96).all()
    return noise


def test_all_answers_have_the_law_of_the_factors():
    views, at = live(), [1, 2, 9, 30, 40]
    measured = views.measure(**ASKED, horizon=40)
    for _ in range(40):
        views.advance()
    left, _, _ = matrices(factors(40))
    true = float(measured.quote.mechanism.square) * (left @ left.T)[np.ix_([e - 1 for e in at], [e - 1 for e in at])]
    noise = insist_on_the_law(measured, at, true + np.eye(len(at)) / 12)
    assert noise[4].std() == pytest.approx(measured.stddev(40), rel=0.1)
    views.close()


# ------------------------------------------------------------------ for ever


def insist_on_the_same_for_ever(tmp_path, epochs, **asked):
    """Whatever is asked first, if it is measured again later, and after a restart, whose process is at no epoch yet.

    Args:
        epochs: Those that are asked about, the last one first.
    """
    place, last = {"ledger": tmp_path / "l", "recover": tmp_path / "r"}, epochs[0]
    views = live(**place)
    measured = views.measure(**asked)
    for epoch in range(1, last + 1):
        views.send([(epoch % 3,)])
        views.advance()
        if epoch == 6:
            later = views.measure(**asked)
    cells = [(epoch, key) for epoch in epochs for key in (0, 1, 7)]
    answers = {(epoch, key): measured.observe(key, epoch=epoch) for epoch, key in cells}
    assert {(epoch, key): later.observe(key, epoch=epoch) for epoch, key in reversed(cells)} == answers
    assert views._data.ledger.spent() == (1, Fraction(TINY)), "once for all epochs"
    views.close()
    again = live(**place)
    measured = again.measure(**asked)
    again.resume()
    again.advance()
    assert {(last, key): measured.observe(key, epoch=last) for key in (0, 1, 7)}.items() <= answers.items()
    again.close()


def test_it_is_the_same_in_whatever_order_and_when_it_is_made_again_later(tmp_path):
    insist_on_the_same_for_ever(tmp_path, (12, 7, 9), **ASKED, horizon=100)


def test_other_horizons_names_and_bins_have_noise_of_their_own():
    views = live()
    made = [views.measure(**ASKED, horizon=100), views.measure(**ASKED, horizon=101),
            views.measure(**ASKED, horizon=100, name="other")]  # fmt: skip
    views.advance()
    found = np.stack([one.observe_many(range(300)) for one in made]).astype(float)
    assert np.abs(np.corrcoef(found) - np.eye(3)).max() < 0.3
    assert len(set(found[0].tolist())) > 10
    views.close()


def test_what_does_not_fit_is_refused_before_any_charge():
    views = live()
    for wrong in (0, -1, 2.5, "9", factored_sums.MOST + 1):
        with pytest.raises(wpinq.WpinqError):
            views.measure(**ASKED, horizon=wrong)
    for asked in ({"epsilon": 1}, {"epsilon": 1, "continual": True}, {**ASKED, "continual": False}):
        with pytest.raises(PlanError, match="goes with continual=True"):
            views.measure(**asked, horizon=10)
    with pytest.raises(PlanError, match="not linear"):
        views.shave().measure(**ASKED, horizon=10)
    with pytest.raises(BudgetError):
        views.measure(**{**ASKED, "epsilon": 11}, horizon=10)
    assert views._data.ledger.spent() == (0, 0)
    views.close()
    curves = wpinq.live({"page": "integer"}, rho=1, delta="1e-5")
    with pytest.raises(PlanError, match="divergences"):
        curves.measure(**ASKED, horizon=10)
    curves.close()


def test_no_epoch_beyond_the_horizon_is_answered(capsys):
    views = live()
    measured = views.measure(**ASKED, horizon=2)
    with pytest.raises(NotReadyError):
        measured.observe(1)
    for _ in range(3):
        views.advance()
    assert isinstance(measured.observe(1, epoch=2), int)
    with pytest.raises(PlanError, match="its horizon"):
        measured.observe(1)
    assert "gaussian noise of factored sums" in measured.explain() and capsys.readouterr().out
    views.close()
