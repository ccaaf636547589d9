"""Units as a whole: what they cost, what is refused, and an audit of removing one person."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import wpinq
from wpinq.core.ledger import Ledger
from wpinq.core.ledger.rows.secret import Secret

TYPES = {"user": str, "page": str}


@pytest.fixture
def views_file(tmp_path):
    path = tmp_path / "views.csv"
    path.write_text("user,page\nann,home\nbob,home\nbob,news\n")
    return path


def test_noise_and_charge_follow_the_bound(views_file):
    views = wpinq.protect(views_file, budget=1, unit=wpinq.users("user", at_most=20))
    m = views.map(lambda page: page).measure("0.5")
    assert m.scale == 40
    assert Ledger.existing(views_file.with_name("views.csv.ledger")).spent()[0] == Fraction(1, 2)
    assert "unit: user (user), at most 20 records; contribution bound 20" in views.explain()


def test_shave_distinct_and_join_keep_the_bound(views_file):
    views = wpinq.protect(views_file, budget=100, unit=wpinq.users("user", at_most=20))
    pages = views.map(lambda page: page)
    assert pages.distinct().measure(1).scale == 20
    assert pages.shave().map(lambda index: index).measure(1).scale == 20
    assert views.map(lambda user, page: page).concat(pages).measure(1).scale == 40


def test_the_ledger_refuses_another_unit(views_file):
    wpinq.protect(views_file, budget=1, unit=wpinq.users("user", at_most=20))
    for unit in (None, wpinq.users("page", at_most=20)):
        with pytest.raises(wpinq.LedgerError, match="privacy unit"):
            wpinq.protect(views_file, budget=1, unit=unit)
    bounds = [{"at_most": 20}, {"at_most": 10}, {"shared": True}, {"at_most": 20, "per": ("page", 3)}]
    for bound in bounds:
        wpinq.protect(views_file, budget=1, unit=wpinq.users("user", **bound))


@pytest.mark.parametrize(
    "make",
    [
        lambda: wpinq.users("user", per=("page", 1)),
        lambda: wpinq.users("user", at_most=3, shared=True),
        lambda: wpinq.users("user", at_most=0),
        lambda: wpinq.users("user", at_most=True),
        lambda: wpinq.users("user", at_most=2.0),
        lambda: wpinq.users(None, at_most=2),
        lambda: wpinq.users(3, at_most=2),
        lambda: wpinq.users("user", at_most=2, per=("page", 0)),
        lambda: wpinq.users("user", at_most=2, per="page"),
        lambda: wpinq.users("user", shared=True, per=("page", 1)),
        lambda: wpinq.Unit(None, 3),
        lambda: wpinq.protect([("a", "b")], budget=1, columns=TYPES, unit="user"),
        lambda: wpinq.protect([("a", "b")], budget=1, columns=TYPES, unit=wpinq.users("person", at_most=1)),
        lambda: wpinq.protect([("a", "b")], budget=1, columns=TYPES, unit=wpinq.users("person", shared=True)),
        lambda: wpinq.protect([("a", "b")], budget=1, columns=TYPES, unit=wpinq.users("user", 1, per=("p", 1))),
        lambda: wpinq.protect([("a", 1)], budget=1, columns={"u": str, "w": int}, weight="w", unit=wpinq.users("u", 1)),
    ],
)
def test_a_wrong_unit_is_refused(make):
    with pytest.raises(wpinq.PlanError, match=r"\(.*\): "):
        make()


def test_a_wrong_unit_leaves_no_ledger(views_file):
    with pytest.raises(wpinq.PlanError):
        wpinq.protect(views_file, budget=1, unit=wpinq.users("person", at_most=1))
    assert [path.name for path in views_file.parent.iterdir()] == ["views.csv"]


def test_a_unit_has_one_bound_that_nobody_can_set_apart():
    with pytest.raises(TypeError):
        wpinq.Unit(column="user", at_most=20, bound=Fraction(1))
    assert [wpinq.users("u", at_most=9).bound, wpinq.users("u", shared=True).bound, wpinq.Unit().bound] == [9, 1, 1]


def test_redefining_the_user_column_changes_nothing_about_the_bound():
    """Records are bounded at the source, so a column that a dataflow overwrites later moves no more of them."""
    records = [("ann", f"p{i}") for i in range(100)] + [("bob", "p0")]
    views = wpinq.protect(records, budget=10**6, columns=TYPES, unit=wpinq.users("user", at_most=5))
    everybody = views.map(lambda user, page: ("someone", page), columns=TYPES).map(lambda user: user).measure(5 * 60)
    many = views.map(lambda user, page: (page, page), columns=TYPES).map(lambda user: user).measure(5 * 60)
    assert everybody.scale == many.scale == Fraction(1, 60)
    assert everybody.observe("someone") == 6, "5 of ann's and 1 of bob's"
    assert many.observe_many([f"p{i}" for i in range(100)]).sum() == 6


def test_null_is_a_person_like_any_other():
    records = [(None, f"p{i}") for i in range(100)] + [("", "p0")]
    views = wpinq.protect(records, budget=10**6, columns=TYPES, unit=wpinq.users("user", at_most=5))
    assert views.map(lambda user: user).measure(5 * 60).observe_many([None, ""]).tolist() == [5, 1]


def test_attack_31_epsilon_audit_of_removing_one_person():
    """The likelihood ratio of any event, with and without a person of 30 records, is at most e^epsilon.

    20,000 worlds beside each other, each with bins of its own, so noise and samples are independent. An event is a
    threshold on the bin that the person fills, which is what an attacker would use. Each of 41 thresholds is tested
    both ways with normal bounds at 6 sigma: false alarm below 1e-6. That the audit has teeth is checked by the same
    test against half of epsilon, which must fail.
    """
    epsilon, worlds = 1.0, 20_000
    unit = wpinq.users("user", at_most=4)
    others, person = [("bob", "a"), ("cid", "b")], [("ann", "a")] * 30
    answers = []
    for records in (others, others + person):
        users, pages = (pl.Series(column) for column in zip(*records, strict=True))
        world = pl.select(pl.int_range(worlds).cast(pl.String).repeat_by(len(records)).explode()).to_series()
        frame = pl.DataFrame(
            {"user": world + "u" + pl.concat([users] * worlds), "page": world + pl.concat([pages] * worlds)}
        )
        views = wpinq.protect(frame, budget=1, unit=unit, secret=Secret(bytes([len(records)] * 32)))
        answers.append(views.map(lambda page: page).measure(epsilon).observe_many([f"{i}a" for i in range(worlds)]))

    def violates(bound):
        for t in range(-20, 21):
            for event in (lambda x, t=t: x >= t, lambda x, t=t: x < t):
                hits = [event(side).mean() for side in answers]
                sigma = [np.sqrt(max(p * (1 - p), 1 / worlds) / worlds) for p in hits]
                for i in (0, 1):
                    room = 6 * np.hypot(sigma[i], np.exp(bound) * sigma[1 - i])
                    if hits[i] > np.exp(bound) * hits[1 - i] + room:
                        return True
        return False

    assert not violates(epsilon)
    assert violates(epsilon / 2), "an audit that cannot see the person says nothing"
