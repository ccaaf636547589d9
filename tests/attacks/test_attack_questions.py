"""Attacks by two plans that are one question: the second is free, and answered or refused by whether alice is there.

A question that was asked is answered from the histogram that was sealed for it. So where two plans with different
answers had one fingerprint, the second would be refused exactly where the answers differ: an oracle for any epsilon.
"""

import math

import polars as pl
import pytest

import wpinq

TINY = "1/1000000"


@pytest.fixture
def two_questions():
    """Ask two plans of data with and without alice: each must be answered, and each must be charged."""

    def call(one, other, columns, alice, others):
        for records in (others, [*others, *alice]):
            views = wpinq.protect(records, budget=1, columns=columns)
            first = one(views).measure(TINY)
            assert first.observe(0) is not None
            second = other(views).measure(TINY)
            assert second.observe(0) is not None
            assert second.question != first.question
            assert sum(entry.kind == "charge" for entry in second.key_owner.ledger.entries()) == 2

    return call


OTHERS = [("bob", "home"), ("cid", "home")]
ALICE = [("alice", "home")]
PAIR = {"user": str, "page": str}


def test_names_that_shave_gives_make_another_question(two_questions):
    def ask(first, second):
        def plan(views):
            mine = views.filter(lambda user: user == "alice").map(lambda user: 0)
            return mine.shave("1/2", name=first).shave("1/2", name=second).map(lambda a: a + 0)

        return plan

    two_questions(ask("a", "b"), ask("b", "a"), PAIR, ALICE, OTHERS)


def test_names_that_group_by_gives_make_another_question(two_questions):
    def ask(first, second):
        def plan(views):
            mine = views.filter(lambda user: user == "alice")
            return mine.group_by("user", len, columns=[first]).shave("1/4", name=second).map(lambda a: a + 0)

        return plan

    two_questions(ask("a", "b"), ask("b", "a"), PAIR, ALICE, OTHERS)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pl.col("x") < math.inf, pl.col("x") < -math.inf),
        (pl.col("x") < math.inf, pl.col("x") < pl.lit(math.nan)),
        (pl.col("x").fill_null(math.inf) == math.inf, pl.col("x").fill_null(-math.inf) == math.inf),
        ("x < 1e999", "x < -(1e999)"),
        ("x < 'inf'", "x < '-inf'"),
        ("x < 'inf'", "x > 'NaN'"),
    ],
    ids=str,
)
def test_numbers_that_are_not_finite_make_another_question(one, other, two_questions):
    def ask(condition):
        return lambda data: data.filter(pl.col("user") == "alice").filter(condition).map(lambda user: 0)

    two_questions(ask(one), ask(other), {"user": str, "x": float}, [("alice", 1.0), ("alice", None)], [("bob", 1.0)])


def test_data_sets_of_one_name_and_version_are_two(tmp_path):
    found = []
    for place, rows in (("eu", "ann,a\n" * 3), ("us", "bob,b\n" * 5)):
        (tmp_path / place).mkdir()
        (tmp_path / place / "views.csv").write_text("user,page\n" + rows)
        found.append(wpinq.protect(tmp_path / place / "views.csv", budget=100, version="2026-11"))
    both = found[0].concat(found[1]).map("page").measure(50)
    assert both.observe_many(["a", "b"]).tolist() == [3, 5]  # the noise is zero but for a chance of 4 exp(-50)


def test_tables_of_one_name_version_and_ledger_are_two(tmp_path):
    """Nobody can tell that two objects hold the same records, so each is read before the charge."""

    def table(rows):
        return wpinq.protect(rows, budget=200, columns=PAIR, version="1", name="views", ledger=tmp_path / "ledger")

    both = table([("ann", "a")] * 3).concat(table([("bob", "b")] * 5)).map("page")
    with pytest.raises(wpinq.ChangedError, match="records: holds other records than those first read as '1'"):
        both.measure(50)
    assert both.left == 200


def test_a_data_set_read_in_another_way_is_another_question(tmp_path):
    """One version, one ledger; what differs is how the fields are read, so the same records may look different."""
    path = tmp_path / "views.csv"
    path.write_text('user,page\nann,a\n"bob",b\n')
    (tmp_path / "views.tsv").write_bytes(path.read_bytes())

    def ask(name, **how):
        given = {"budget": 1, "version": "1", "name": "views", "ledger": tmp_path / "ledger"} | how
        return wpinq.protect(tmp_path / name, **given).map(lambda user: user).measure("0.1").question

    ways = [ask("views.csv"), ask("views.csv", header=False, columns=["user", "page"]),
            ask("views.csv", columns={"user": str, "page": bytes}), ask("views.csv", columns=["page", "user"]),
            ask("views.tsv", header=False, columns=["user"])]  # fmt: skip
    assert len(set(ways)) == len(ways)
    assert ask("views.csv") == ways[0]
