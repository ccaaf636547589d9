"""Attacks on the noise: holes, digits, seeds, streams that repeat. Attacks 1, 2, 5, 9, 10, 11 and rules 3, 4, 7, 10."""

import datetime as dt
import inspect
import os
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import processes
import pytest

import wpinq
from wpinq.core.ledger import Ledger
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.records.bins import bin_frame
from wpinq.core.records.identity import identities
from wpinq.core.records.schema import Column, Kind, Schema

ABSENT = [f"absent {i}" for i in range(4000)]
ONE = Secret(bytes(range(32)))


def pages(records=(("ann", "home"),), secret=ONE, budget=10**6, **changes):
    settings = {"version": "1", "name": "views", "columns": ("user", "page"), **changes}
    return wpinq.protect(list(records), budget=budget, secret=secret, **settings).map(lambda page: page)


@pytest.fixture
def one_identity(monkeypatch):
    """Take the first lines of defence away: one secret, version and ledger identity for all, and no seals."""
    monkeypatch.setattr(Ledger, "identity", property(lambda _: "one"), raising=False)


@pytest.mark.parametrize("epsilon", ["1e-6", "1/7", 1, 5])
@pytest.mark.parametrize("thickness", [1, "1/3"])
def test_attack_01_both_truths_reach_all_points(epsilon, thickness):
    """Weights are whole or in thirds: whatever the truth, released values are at the same resolution, without holes."""
    shaved = pages([("ann", "home"), ("bob", "home")]).shave(thickness).map(lambda page: page)
    m = shaved.measure(epsilon)
    values = m.observe_many(ABSENT) * m.node.resolution
    assert np.abs(values - np.round(values)).max() < 1e-3
    steps = np.unique(np.round(values)).astype(np.int64)
    near = min(int(2 * m.scale * m.node.resolution), 40)  # each is hit with probability above 1/2 by 4,000 draws
    if m.scale < 100:
        assert set(range(-near // 4, near // 4 + 1)) <= set(steps.tolist())
    for modulus in (2, 3, 5) if m.scale > 3 else ():
        assert len(set((steps % modulus).tolist())) == modulus


def test_attack_02_the_grid_of_laplace_does_not_depend_on_the_truth():
    records = [(f"u{i}", "heavy") for i in range(3000)] + [("ann", "light")]
    m = pages(records).measure("0.37", mechanism="laplace")
    steps = m.observe_many(["heavy", "light", *ABSENT]) * 2**20
    assert (steps == np.round(steps)).all()
    assert len(set((steps % 2**10).tolist())) > 900, "values use all of the grid"


def test_attack_02_last_digits_do_not_tell_whether_there_are_weights():
    """An empty histogram and one with weights are held as other integers; both must be rounded alike.

    At this scale 53 bits do not hold a sum. Rounded once (v = T / L) or twice (first T, then the quotient), about a
    quarter of the quotients differ in their last digit: at epsilon 2^-34 a thousand bins would tell exactly.
    """
    thickness, epsilon = Fraction(1, 3 * 2**20), Fraction(1, 2**34)
    answers = []
    for records in ([("bob", "home")], [("bob", "home"), ("alice", "home")]):
        views = wpinq.protect(records, budget=1, secret=ONE, version="1", columns=("user", "page"))
        alice = views.filter(lambda user: user == "alice").map(lambda page: page)
        answers.append(alice.shave([thickness, 1]).map(lambda page: page).measure(epsilon).observe_many(ABSENT))
    resolution = 3 * 2**20
    for values in answers:
        twice = [float(np.float64(round(Fraction(v) * resolution))) / resolution for v in values.tolist()]
        assert (np.array(twice) == values).all(), "a quotient that no sum of 53 bits has"


def test_attack_05_no_seed_and_no_switch(monkeypatch):
    """Nothing that an analyst writes holds randomness, and without a secret the operating system makes one."""
    asked = set(inspect.signature(wpinq.Collection.measure).parameters)
    asked |= set(inspect.signature(wpinq.Measurement.observe).parameters)
    assert not {"seed", "noise", "salt", "secret", "rng", "random", "random_state", "key"} & asked
    draws = [pages(secret=None).measure(1).observe_many(ABSENT) for _ in range(2)]
    assert (draws[0] != draws[1]).mean() > 0.5
    np.random.seed(1)
    before = pages(secret=None).measure(1).observe_many(ABSENT)
    np.random.seed(1)
    assert (pages(secret=None).measure(1).observe_many(ABSENT) != before).any()
    wanted = []
    true = os.urandom
    monkeypatch.setattr(os, "urandom", lambda size: wanted.append(size) or true(size))
    pages(secret=None)
    assert 32 in wanted


FORKED = """
import os, sys, wpinq
def ask():
    views = wpinq.protect([("ann", "home")], budget=10, columns=("user", "page"))
    return views.map(lambda page: page).measure(1).observe_many([f"b{i}" for i in range(50)]).tolist()
ends = []
for _ in range(2):
    out, into = os.pipe()
    if os.fork() == 0:
        os.write(into, repr(ask()).encode())  # a secret of its own
        os._exit(0)
    os.wait()
    ends.append(os.read(out, 10**6))
print(ends[0] != ends[1])
"""


def test_attack_05_forked_processes_do_not_repeat_each_other():
    done = processes.run([sys.executable, "-W", "ignore", "-c", FORKED], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_attack_09_two_measurements_have_independent_noise(spent):
    """Names, scales, mechanisms, versions, data sets and plans: no two releases share a stream (rules 3 and 4).

    False alarms: 36 pairs, each at 5 sigma, below 3e-5 together.
    """
    base = pages()
    draws = [
        base.measure("0.1"),
        base.measure("0.1", name="again"),
        base.measure("0.1", name=""),
        base.measure("0.2"),
        base.measure("0.1", mechanism="laplace"),
        base.filter(lambda page: page != "x").measure("0.1"),
        pages(version="2").measure("0.1"),
        pages(name="other").measure("0.1"),
        pages(secret=Secret(bytes(32))).measure("0.1"),
    ]
    assert spent(draws[0]) == Fraction(7, 10), "the first six are of one data set, and each was charged"
    values = [m.observe_many(ABSENT).astype(float) for m in draws]
    for i in range(len(values)):
        for j in range(i):
            assert abs(np.corrcoef(values[i], values[j])[0, 1]) < 5 / np.sqrt(len(ABSENT)), (i, j)
            assert len(np.unique(values[i] - values[j])) > 50, "their difference is noise"


def test_rule_03_equal_histograms_of_two_data_sets_have_different_noise(tmp_path):
    """Two data sets of one curator: the same secret (WPINQ_SECRET), name, version and plan, and a ledger each."""
    values = []
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        views = wpinq.protect(
            [("ann", "home")], budget=1, ledger=tmp_path / place / "ledger", name="views", version="monday",
            secret=ONE, columns=("user", "page"),
        )  # fmt: skip
        values.append(views.map(lambda page: page).measure("0.1").observe_many(ABSENT))
    assert (values[0] != values[1]).any(), "equal answers tell that the two histograms are equal, exactly"


def test_attack_11_changed_data_never_meets_old_noise(one_identity):
    """Even where nothing else tells two states of the data apart: the digest of the histogram is in the key."""
    before = pages([("ann", "home")]).measure("0.1").observe_many(ABSENT)
    after = pages([("ann", "home"), ("bob", "home")]).measure("0.1").observe_many(ABSENT)
    same = pages([("ann", "home")]).measure("0.1").observe_many(ABSENT)
    assert (before == same).all()
    assert abs(np.corrcoef(before, after)[0, 1]) < 5 / np.sqrt(len(ABSENT))


def test_rule_07_order_batches_and_shards_do_not_change_a_digest(one_identity, monkeypatch):
    """The same records in another order are the same release, not a closed version or new noise."""
    from wpinq.sources.tables import tuples

    records = [(f"u{i}", f"page {i % 97}") for i in range(3000)]
    answers = []
    for order in (records, records[::-1], sorted(records, key=lambda one: hash(one[0]))):
        cdf = wpinq.degrees.cdf(pages(order)).measure("0.1").observe_many(range(1, 200))
        answers.append((pages(order).measure("0.1").observe_many(ABSENT).tolist(), cdf.tolist()))
    monkeypatch.setattr(tuples, "ROWS_PER_FRAME", 7)
    answers.append((pages(records).measure("0.1").observe_many(ABSENT).tolist(), answers[0][1]))
    assert all(one == answers[0] for one in answers)


EQUAL = [1, 1.0, True, np.int64(1), np.uint8(1), np.float32(1), Decimal(1), Decimal("1.00"), Fraction(1), np.True_]
KEY = bytes(16)


def identity(value, kind=Kind.ANY):
    schema = Schema((Column("x", kind),))
    return tuple(identities(bin_frame([value], schema), schema, KEY)[0].tolist())


def test_attack_10_equal_bins_have_one_noise():
    """One bin asked in every way that equals it: one answer, so nothing to average."""
    views = wpinq.protect([(1,), (1.0,), (True,), (Decimal(1),)], budget=10**6, columns=("x",))
    m = views.measure(100)
    assert {m.observe(one) for one in EQUAL} == {4}, "and records that are equal are one bin"
    assert len({views.measure("0.01").observe(one) for one in EQUAL}) == 1
    groups = [
        [0.0, -0.0, 0, False], [float("nan"), np.nan, np.float32("nan"), Decimal("NaN"), None], [(1, "a"), [1.0, "a"]],
        [dt.date(2026, 1, 1), np.datetime64("2026-01-01")],
    ]  # fmt: skip
    for group in groups:
        assert len({identity(one) for one in group}) == 1, group


def test_attack_10_different_bins_have_different_noise():
    """No two bins that could differ in weight share a noise: their difference would be exact."""
    different = [
        1, "1", b"1", (1,), ((1,),), ("1",), None, "None", 2**63, 2**53 + 1, 2.0**53, 0.1, Decimal("0.1"), "é",
        "e\u0301",
        "", b"", (), "nan", float("inf"), -float("inf"), dt.date(1970, 1, 1), dt.datetime(1970, 1, 1), 0,
        dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.timedelta(0), ("a", "bc"), ("ab", "c"), "a\0", "a", "A", "a ",
    ]  # fmt: skip
    assert len({identity(one) for one in different}) == len(different)


@pytest.mark.parametrize(("kind", "value"), [
    (Kind.INT, 7), (Kind.FLOAT, 7.0), (Kind.FLOAT, 0.5), (Kind.TEXT, "é"), (Kind.BOOL, True), (Kind.BYTES, b"7"),
    (Kind.DATE, dt.date(2026, 1, 1)), (Kind.SPAN, dt.timedelta(1)), (Kind.TIME, dt.datetime(2026, 1, 1)),
])  # fmt: skip
def test_rule_10_typed_and_untyped_columns_give_a_value_one_identity(kind, value):
    assert identity(value, kind) == identity(value)
    assert identity(None, kind) == identity(None)
