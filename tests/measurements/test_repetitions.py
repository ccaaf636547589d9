"""Repetitions of one plan: computed once, sealed and drawn by themselves."""

from __future__ import annotations

import numpy as np
from default_engine import flow

import wpinq


def test_they_share_one_histogram_and_no_noise(monkeypatch):
    """Two rows of 200 draws of scale 10 are alike, or one draw is 3,000, with a chance below 1 in 10^100."""
    ran, run = [], flow.run
    monkeypatch.setattr(flow, "run", lambda job, plan: ran.append(len(job.roots)) or run(job, plan))
    table = wpinq.protect([("a",)] * 5000, budget=1, columns={"page": str})
    pages = table.map("page")
    asked = [pages.measure("1/10", name=f"repetition {number}") for number in range(4)]
    other = table.filter("page = 'b'").measure("1/10")
    answers = [one.observe_many(["a"]) for one in asked]
    assert ran == [2]
    assert all(abs(answer[0] - 5000) < 3000 for answer in answers)
    assert abs(other.observe("a")) < 3000
    bins = [f"absent {number}" for number in range(200)]
    noise = [one.observe_many(bins) for one in asked]
    assert not any(np.array_equal(noise[one], noise[two]) for one in range(4) for two in range(one))


def test_windows_that_wait_stop_nobody_else():
    """A measurement of windows has nothing to compute for all of them together."""
    table = wpinq.protect([("a", n) for n in range(20)], budget=200, columns={"page": str, "n": int})
    windows = table.window(3, at="n").map("page").measure(90)
    assert table.map("page").measure(90).observe("a") == 20
    assert windows.observe("a", window=3) == 3
