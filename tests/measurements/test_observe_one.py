"""A bin that is asked for alone has the answer that it has among many, bit for bit, found without frames or arrays."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import wpinq
from wpinq.core.kernels import LIB
from wpinq.core.noise import DiscreteLaplace, GridLaplace, Words
from wpinq.core.noise.geometric import number
from wpinq.core.noise.words import thresholds
from wpinq.core.records import identity
from wpinq.errors import BinError

LONG = "a text of more bytes than a view holds " * 3
TIMES = [dt.date(2026, 1, 1), dt.datetime(2026, 1, 1, 12), dt.timedelta(3), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)]
VALUES = [None, "", "a", "Zoë", LONG, "twelve bytes", 0, -1, 1, 2**62, -(2**63), True, 0.5, 1e300, float("inf"), 2.0,
          -0.0, float("nan"), b"", b"x", b"y" * 40, Decimal("0.1"), Fraction(1, 3), np.int32(1), np.float32(0.5), 2**70,
          (), ("a", 1), (("a", None), (1, (2.5,))), *TIMES]  # fmt: skip
COLUMNS = {"text": str, "number": int, "ratio": float, "flag": bool, "raw": bytes}


@pytest.fixture(params=[True, False], ids=["compiled", "plain"])
def compiled(request, monkeypatch):
    if request.param and LIB is None:
        pytest.skip("the kernels are not compiled")
    if not request.param:
        for module in (identity,):
            monkeypatch.setattr(module, "LIB", None)


def alike(measurement, bins):
    """Ask both ways; what is refused is refused in the same words."""
    for one in bins:
        found = []
        for ask in (measurement.observe, lambda one: measurement.observe_many([one])[0].item()):
            try:
                found.append(ask(one))
            except BinError as error:
                found.append(str(error))
        assert found[0] == found[1], repr(one)
        assert type(found[0]) is type(found[1])


@pytest.mark.usefixtures("compiled")
def test_a_bin_of_any_kind_alone_and_among_many():
    table = pl.DataFrame({
        "text": ["a", None, LONG, ""] * 8, "number": [1, None, 2**62, 0] * 8, "ratio": [0.5, None, 2.0, 1e300] * 8,
        "flag": [True, None, False, True] * 8, "raw": [b"x", None, b"y" * 40, b""] * 8,
        "time": [dt.datetime(2026, 1, 1, 12), None, None, None] * 8,
    })  # fmt: skip
    views = wpinq.protect(table, budget=10**6)
    for name in table.columns:
        alike(views.map(name).measure(1), VALUES)
    alike(views.map(lambda text, number: (text, number)).measure(1), [
        ("a", 1), ["a", 1], ("a", None), (None, None), ("a",), ("a", 1, 2), "ab", 7, (1, "a"), ("a", 1.0), (LONG, -1)
    ])  # fmt: skip


@pytest.mark.usefixtures("compiled")
def test_a_bin_of_a_column_of_any_kind_of_value():
    views = wpinq.protect([(one,) for one in VALUES], budget=10**6, columns=["x"])
    alike(views.measure(0.01), VALUES)
    alike(views.map(lambda x: (x, len("more"))).measure(0.01), [(one, 4) for one in VALUES])


@pytest.mark.parametrize("mechanism", ["geometric", "laplace"])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**4), Fraction(1, 7), 3000])
def test_a_bin_of_every_way_to_hold_weights(mechanism, epsilon):
    views = wpinq.protect([(f"u{i % 7}", i % 50) for i in range(500)], budget=10**9, columns={"user": str, "n": int})
    plans = [views.map("n"), views.map("n").shave().map(lambda index: index), views.map("user").shave(),
             views.group_by("user", len), views.distinct().map("n"), views.join(views, on="user").map("n")]  # fmt: skip
    for plan in plans:
        bins = [
            None, 0, 1, 49, 50, -1, 10**6, 2**63 - 1, -(2**63), 2**63, "u1", "u9", ("u1", 3), ("u1", 71), ("u1", 72),
        ]  # fmt: skip
        alike(plan.measure(epsilon, mechanism=mechanism), bins)


@pytest.mark.parametrize("scale", [Fraction(1, 1000), Fraction(1, 3), Fraction(10), Fraction(10**6), Fraction(2**57)])
@pytest.mark.parametrize("kind", [DiscreteLaplace, GridLaplace])
def test_the_noise_of_one_is_its_noise_among_many(scale, kind):
    words, noise = Words(bytes(range(32))), kind(scale)
    ids = np.random.default_rng(1).integers(0, 2**64, (2000, 2), np.uint64)
    assert [noise.draw_one(words, one.tobytes()) for one in ids] == noise.draw(words, ids).tolist()


class Chosen(Words):
    """Words of which some, by their numbers, are chosen on one side."""

    def __init__(self, side, chosen):
        super().__init__(bytes(32))
        self.side, self.chosen = side, chosen

    def pair(self, identities, number):
        found = super().pair(identities, number).copy()
        found[:, self.side] = self.chosen.get(number, found[:, self.side])
        return found

    def first(self, identity, count):
        ids = np.frombuffer(identity, "<u8").reshape(1, 2)
        return tuple(word for number in range(count) for word in self.pair(ids, number)[0].tolist())


@pytest.mark.parametrize("side", [0, 1])
def test_what_is_rare_is_settled_as_among_many(side):
    """A word that equals its threshold, and a hit of the tail, which come once in 2^60 bins."""
    noise, one = DiscreteLaplace(Fraction(10)), np.array([[5, 6]], np.uint64)
    *digits, tail = thresholds(noise.scale)
    cases = [{j: limit.word(0)} for j, limit in enumerate(digits)]
    cases += [{len(digits): tail.word(0), number(len(digits), 1): word} for word in (0, tail.word(1) + 1)]
    found = []
    for chosen in cases:
        words = Chosen(side, chosen)
        found.append(noise.draw_one(words, one.tobytes()))
        assert found[-1] == noise.draw(words, one)[0]
    assert abs(found[-2] - found[-1]) == 2 ** len(digits), "a hit of the tail shows"


def test_an_interval_that_is_asked_for_again_is_not_computed_again(monkeypatch):
    measurement = wpinq.protect([("a",)], budget=1, columns=["x"]).measure(Fraction(1, 37))
    first, asked = measurement.interval(), []
    leaves = DiscreteLaplace._leaves
    monkeypatch.setattr(DiscreteLaplace, "_leaves", lambda *given: asked.append(1) or leaves(*given))
    assert measurement.interval() == first
    assert not asked
    assert measurement.interval("0.9") < first
    assert asked
