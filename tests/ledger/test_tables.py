"""One ledger for several tables of the same people: what one person loses is one number."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import wpinq
from wpinq.core.ledger import Ledger
from wpinq.core.ledger.sums.accountant import Accountant
from wpinq.core.ledger.sums.cost import Charge
from wpinq.core.plan.stability import sensitivities
from wpinq.errors import BudgetError, LedgerError
from wpinq.testing import evaluate

PERSONS = [("ann", "Rome"), ("bob", "Oslo")]
VISITS = [("ann", "a"), ("ann", "b"), ("bob", "a")]


def persons(place, **more):
    given = {"name": "persons", "ledger": place / "L", "unit": wpinq.users("id", at_most=1), "version": "1"}
    return wpinq.protect(PERSONS, columns={"id": str, "town": str}, budget=2, **{**given, **more})


def visits(place, **more):
    given = {"name": "visits", "ledger": place / "L", "unit": wpinq.users("id", at_most=3), "version": "1"}
    return wpinq.protect(VISITS, columns={"id": str, "page": str}, **{**given, **more})


def spent(place):
    return Ledger.existing(place / "L").spent()[0]


def test_questions_over_each_table_add_up_and_share_what_is_left(tmp_path):
    first = persons(tmp_path).map("town").measure(epsilon=0.5).observe("Rome")
    visits(tmp_path).map("page").measure(epsilon=1).observe("a")
    assert spent(tmp_path) == Fraction(3, 2)
    with pytest.raises(BudgetError, match="is left of data set"):
        visits(tmp_path).map("page").measure(epsilon=0.75)
    assert persons(tmp_path).map("town").measure(epsilon=0.5).observe("Rome") == first
    assert spent(tmp_path) == Fraction(3, 2), "asked again, with both opened anew, under one declared version each"


def test_a_join_of_two_tables_costs_what_it_says(tmp_path):
    """Of the scale max(k U), each table pays its k U / scale: a person who is in both loses the sum."""
    rows = persons(tmp_path).join_rows(visits(tmp_path), on="id").map("town")
    quote = rows.quote(epsilon=1)
    rows.measure(quote=quote).observe("Rome")
    assert spent(tmp_path) == sum(k * 1 / quote.scale for k in quote.sensitivities.values()) == 2


def test_parts_of_two_tables_are_not_parts_of_one(tmp_path):
    """In one table the largest part counts; over two, each table's largest."""
    for table, name in ((persons(tmp_path), "town"), (visits(tmp_path), "page")):
        for part in table.partition(name, ["Rome", "a"]).values():
            part.measure(epsilon=0.5)
    assert spent(tmp_path) == 1


@pytest.mark.parametrize("unit", [None, wpinq.users("id", at_most=3, period=1, at="n")])
def test_tables_of_other_units_are_refused(tmp_path, unit):
    persons(tmp_path)
    columns = {"id": str, "page": str, "n": int}
    with pytest.raises(LedgerError, match="the same people"):
        wpinq.protect([], columns=columns, name="visits", ledger=tmp_path / "L", unit=unit)
    assert len(Ledger.existing(tmp_path / "L").entries()) == 1


def test_whom_a_table_is_of_is_fixed_when_it_comes_and_each_question_has_a_bound(tmp_path):
    persons(tmp_path), visits(tmp_path)
    visits(tmp_path, unit=wpinq.users("id", at_most=4)), visits(tmp_path, unit=wpinq.users("id", shared=True))
    for other in (None, wpinq.users("page", at_most=4)):
        with pytest.raises(LedgerError, match="whom it protects is fixed when it is made"):
            visits(tmp_path, unit=other)


def mails(place, **more):
    columns = {"sender": str, "receiver": str}
    given = {"name": "mails", "ledger": place / "L", "unit": wpinq.users("sender", at_most=3), "version": "1"}
    return wpinq.protect([], columns=columns, **{"budget": 9, **given, **more})


def test_whose_a_tables_records_are_is_declared_once(tmp_path):
    """Of mails either the sender or the receiver: who sent a thousand is one record of a thousand receivers."""
    mails(tmp_path).measure(1)
    for other in ("receiver", None):
        unit = None if other is None else wpinq.users(other, at_most=3)
        with pytest.raises(LedgerError, match="whom it protects is fixed when it is made"):
            mails(tmp_path, unit=unit)
    assert spent(tmp_path) == 1
    rows = [("ann", str(n)) for n in range(1000)]
    by_receiver = mails(tmp_path, unit=wpinq.users("receiver", at_most=3), ledger=None)
    assert len(evaluate(by_receiver, rows)) - len(evaluate(by_receiver, [])) == 1000, "what it would have charged as 3"


def test_tables_of_the_same_people_tell_them_apart_by_columns_of_their_own(tmp_path):
    people, seen = persons(tmp_path), wpinq.protect(
        VISITS, columns={"uid": str, "page": str}, name="visits", version="1", ledger=tmp_path / "L",
        unit=wpinq.users("uid", at_most=3),
    )  # fmt: skip
    sent = mails(tmp_path, budget=None)
    people.map("town").measure(epsilon=0.5), seen.map("page").measure(epsilon=1)
    assert spent(tmp_path) == Fraction(3, 2)
    pairs = people.join_rows(seen, left="id", right="uid")
    both = pairs.join_rows(sent, left="id", right="sender")
    moved = [sum(sensitivities(plan._node).values()) for plan in
             (pairs.map("town"), pairs.map("id").distinct(), both.map("town"), both.map("id").distinct(),
              people.map("id").concat(seen.map("uid as id")).distinct())]  # fmt: skip
    assert moved == [3, 1, 9, 1, 1]
    other = wpinq.protect([], columns={"uid": str}, name="visits", version="2", ledger=tmp_path / "L",
                          unit=wpinq.users("uid", at_most=50))  # fmt: skip
    assert other.budget.spent == Fraction(3, 2)
    assert Ledger.existing(tmp_path / "L").unit == "user (id); user (uid) in visits; user (sender) in mails"


def test_people_of_two_types_are_two_people(tmp_path):
    """Who is 7 in one table and '7' in the other moves both, and no key holds that person."""
    numbers = wpinq.protect([], 9, columns=("id",), name="one", version="1", ledger=tmp_path / "L",
                            unit=wpinq.users("id", at_most=1))  # fmt: skip
    texts = wpinq.protect([], columns={"who": str}, name="two", version="1", ledger=tmp_path / "L",
                          unit=wpinq.users("who", at_most=1))  # fmt: skip
    both = texts.map(lambda who: who, columns={"id": object}).concat(numbers).distinct()
    assert sum(sensitivities(both._node).values()) == 2


def test_periods_are_those_of_all_tables(tmp_path):
    def table(name, unit):
        columns = {"u": str, "v": str, "t": int, "s": int, "o d": int, "w (x)": str}
        return wpinq.protect([], 9 if name == "a" else None, columns=columns, name=name, version="1",
                             ledger=tmp_path / "L", unit=unit)  # fmt: skip

    table("a", wpinq.users("u", at_most=3, period=2, at="t"))
    table("b", wpinq.users("v", at_most=1, period=2, at="s"))
    for whom, length, at in (("v", None, None), ("v", 3, "s"), ("v", 2, "o d"), ("w (x)", 2, "s")):
        odd = wpinq.users(whom, at_most=1, period=length, at=at)
        with pytest.raises(LedgerError, match="the same people"):
            table("c", odd)


def test_each_row_says_whose_and_within_what_bound_it_was_asked(tmp_path):
    people, seen = persons(tmp_path), visits(tmp_path)
    seen.map("page").measure(1 / 2)
    seen.at_most(9, per=("page", 2)).map("page").measure(1 / 4)
    seen.at_most(2).concat(seen.at_most(4)).measure(1 / 4)
    people.join_rows(seen, on="id").map("town").measure(1 / 8)
    wpinq.protect([], columns={"id": str}, name="all", version="1", ledger=tmp_path / "L", unit=wpinq.users("id")).map(
        "id"
    ).distinct().measure(1 / 8)
    rows = [(row.label, row.within) for row in Ledger.existing(tmp_path / "L").entries() if not row.internal]
    assert rows == [
        ("persons", "user (id)"),
        ("visits", "user (id)"),
        ("map(page)", "at most 3 records"),
        ("map(page)", "at most 9 records, at most 2 per page"),
        ("concat()", "at most 2 records; at most 4 records"),
        ("join_rows(id).map(town)", "at most 1 records"),
        ("join_rows(id).map(town)", "at most 3 records"),
        ("all", "user (id)"),
        ("map(id).distinct()", "all records"),
    ]


def test_a_ledger_of_before_has_rows_without_a_bound(tmp_path, monkeypatch):
    """They are read as they were; a bound in a row decides nothing, so the same question is free."""
    body = Charge.body
    with monkeypatch.context() as before:
        old = lambda charge, **more: {k: v for k, v in body(charge, **more).items() if k != "within"}  # noqa: E731
        before.setattr(Charge, "body", old)
        first = visits(tmp_path, budget=2).map("page").measure(1).observe("a")
    again = visits(tmp_path, budget=2).map("page").measure(1)
    assert again.observe("a") == first
    assert spent(tmp_path) == 1
    (row,) = (row for row in Ledger.existing(tmp_path / "L").entries() if row.kind == "charge")
    assert row.within == ""


def test_a_file_without_a_name_takes_that_of_the_ledger(tmp_path):
    """Next month's file is another version of the same data set, and so is one of another name."""
    for name in ("june.csv", "july.csv"):
        (tmp_path / name).write_text(f"user,page\nann,{name}\n")
        wpinq.protect(tmp_path / name, budget=1, ledger=tmp_path / "L").measure(epsilon="1/4").observe(("ann", "x"))
    assert spent(tmp_path) == Fraction(1, 2)
    (tmp_path / "july.csv").rename(tmp_path / "august.csv")
    august = wpinq.protect(tmp_path / "august.csv", ledger=tmp_path / "L", version="july.csv")
    august.measure(epsilon="1/4").observe(("ann", "x"))
    assert spent(tmp_path) == Fraction(1, 2)


def test_a_ledger_beside_its_file_is_of_that_file_alone(tmp_path: Path):
    """Only `ledger=` says that tables are of the same people."""
    (tmp_path / "v.csv").write_text("user,page\nann,a\n")
    wpinq.protect(tmp_path / "v.csv", budget=1, name="one")
    with pytest.raises(LedgerError, match="not 'two''s"):
        wpinq.protect(tmp_path / "v.csv", budget=1, name="two")


def test_an_older_wpinq_refuses_a_ledger_of_several_tables(tmp_path, monkeypatch):
    persons(tmp_path), visits(tmp_path)
    monkeypatch.delattr(Accountant, "_table")
    with pytest.raises(LedgerError, match="another version of wpinq"):
        Ledger.existing(tmp_path / "L")


def test_a_ledger_holds_whom_and_no_bound():
    units = wpinq.users("id", at_most=1), wpinq.users("id", at_most=9, per=("page", 2)), wpinq.users("id", shared=True)
    assert {unit.whom for unit in units} == {"user (id)"}
    assert wpinq.users("id", at_most=2, period="1d", at="t").whom == "user (id) in one window of 1d by t"
