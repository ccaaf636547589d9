"""A mechanism with another law than thresholds and counting trees are proved for is not published under them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import wpinq
from wpinq.core.noise import DiscreteLaplace
from wpinq.core.plan.node import sources
from wpinq.core.pricing import privacy_cost
from wpinq.errors import PlanError


@dataclass(frozen=True)
class Wide(DiscreteLaplace):
    """Ten times as wide as it says: below the thresholds of its scale a unit alone shows often."""

    def draw(self, words, identities):
        return super().draw(words, identities) * 10


@dataclass(frozen=True)
class Nameless:
    """It names no law at all."""

    scale: object
    name = "nameless"
    grid = 1


@pytest.mark.parametrize("planted", [Wide, Nameless])
def test_a_release_refuses_another_law_and_charges_nothing(planted, monkeypatch):
    monkeypatch.setattr(privacy_cost, "mechanism", lambda name, scale: planted(scale))
    views = wpinq.protect(["a"] * 50, budget=9, delta="1/2", columns={"k": str})
    found = views.measure(epsilon=1)
    with pytest.raises(PlanError, match=r"release: .*law.*keys="):
        found.release(delta="1e-6")
    assert sources(views._node)[0].ledger.spent() == (1, 0)


@pytest.mark.parametrize("planted", [Wide, Nameless])
def test_a_continual_measurement_refuses_another_law_and_charges_nothing(planted, monkeypatch):
    monkeypatch.setattr(privacy_cost, "mechanism", lambda name, scale: planted(scale))
    live = wpinq.live({"k": str}, budget=9)
    with pytest.raises(PlanError, match=r"continual=True.*law"):
        live.measure(epsilon=1, continual=True)
    assert sources(live._node)[0].ledger.spent() == (0, 0)
    live.close()


@pytest.mark.parametrize("noise", ["geometric", "laplace"])
def test_the_mechanisms_that_there_are_have_that_law(noise):
    views = wpinq.protect(["a"] * 50, budget=9, delta="1/2", columns={"k": str})
    assert list(dict(views.measure(epsilon=1, mechanism=noise).release(delta="1e-6"))) == ["a"]
    live = wpinq.live({"k": str}, budget=9)
    assert live.measure(epsilon=1, mechanism=noise, continual=True).times.continual
    live.close()
