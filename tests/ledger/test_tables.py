"""One ledger for several tables of the same people: what one person loses is one number."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import wpinq
from wpinq.core.ledger import Ledger
from wpinq.core.ledger.accountant import Accountant
from wpinq.errors import BudgetError, LedgerError

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


@pytest.mark.parametrize("unit", [None, wpinq.users("page", at_most=3), wpinq.users("id", at_most=3, period=1, at="n")])
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
