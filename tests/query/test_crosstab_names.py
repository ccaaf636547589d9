"""Tables of columns whose values nobody listed: the names of enough records, all others under one, from one budget."""

import polars as pl
import pytest

import wpinq
from wpinq.core.plan.node import sources
from wpinq.errors import BudgetError, PlanError

MANY = [("ann", "north", 1, True), ("bob", "south", 2, False), ("eve", None, 2, True)]
ROWS = [(f"{who}{number}", *rest) for number in range(400) for who, *rest in MANY]
ROWS += [(f"x{number}", name, 1, True) for number in range(300) for name in ("other", "all", "two\nlines")]
ROWS += [("lone", "island", 9, True)]
PEOPLE = pl.DataFrame(ROWS, schema=["person", "town", "size", "member"], orient="row")


def protected(**more):
    return wpinq.protect(PEOPLE, **{"budget": 10**6, "delta": "1e-5", **more})


def left(people):
    account = sources(people._node)[0].ledger
    return account.remaining(), account.spent()[1]


@pytest.mark.parametrize(("unit", "rest"), [({}, 1301), ({"unit": wpinq.users("person", at_most=1)}, 701)])
def test_names_of_enough_records_are_told_and_all_others_are_counted_under_one(unit, rest):
    people = protected(**unit)
    told = wpinq.table(people, "town", ["size", "member"], epsilon=10**4, delta="1e-6")
    assert told.keys == (
        ("town", ("north", "south", "other", "all")),
        ("size", ("1", "2", "other", "all")),
        ("member", ("false", "true", "all")),
    )
    assert told.counts[:, -1, -1].tolist() == [
        400,
        400,
        rest,
        rest + 800,
    ]  # nulls, what cannot be told, and the lone one
    assert told.counts[-1, 2, -1] == 1
    assert told.answer.cost == {"epsilon": 10**4, "delta": 1e-6}
    assert (left(people)[0], left(people)[1]) == (10**6 - 10**4, pytest.approx(1e-6))
    assert "Values of town and size are told that enough records have; all else is 'other'." in repr(told)


@pytest.mark.parametrize("name", ["home town", 'a"b', "count(*)", "x+y"])
def test_names_are_told_of_a_column_of_any_name(name):
    """A name with a space was read as SQL: "map: no column 'home'"."""
    people = wpinq.protect(PEOPLE.rename({"town": name}), budget=10**6, delta="1e-5")
    told = wpinq.table(people, name, epsilon=10**4, delta="1e-6")
    assert told.keys == ((name, ("north", "south", "other", "all")),)


def test_who_is_alone_is_not_told():
    told = wpinq.table(protected(), "town", epsilon=2, delta="1e-9")
    assert "island" not in told.keys[0][1]


def test_nothing_but_other_is_left_of_few_records():
    people = wpinq.protect(PEOPLE[:2], budget=1, delta="1e-5")
    told = wpinq.table(people, "town", epsilon=1, delta="1e-9")
    assert told.keys == (("town", ("other", "all")),)
    assert told.counts.shape == (2,)


def test_gaussian_noise_is_paid_in_rho_and_names_too():
    people = wpinq.protect(PEOPLE, rho=1, delta="1e-5")
    told = wpinq.table(people, "town", rho="1/2", delta="1e-7", mechanism="gaussian")
    assert "north" in told.keys[0][1]
    assert told.answer.cost["rho"] == 0.25
    assert told.answer.cost["epsilon"] == pytest.approx(0.5**0.5)  # whose zero-concentrated loss is the other quarter


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ({}, "list the values of 'town'"),
        ({"delta": "1e-6", "other": None}, "list the values of 'town', or give other="),
        ({"delta": "1e-6", "mechanism": "gaussian"}, "cannot be that of the noise too"),
        ({"delta": 2}, "not below 1"),
    ],
)
def test_what_cannot_be_named_is_refused_and_free(words, match):
    people = protected(budget=1)
    with pytest.raises(wpinq.errors.WpinqError, match=match):
        wpinq.table(people, "town", epsilon=1, **words)
    assert left(people) == (1, 0)


@pytest.mark.parametrize("cost", [{"epsilon": 2, "delta": "1e-6"}, {"epsilon": 1, "delta": "1e-4"}])
def test_names_are_not_charged_where_the_table_does_not_fit(cost):
    people = protected(budget="3/2")
    with pytest.raises(BudgetError, match="nothing was charged"):
        wpinq.table(people, "town", **cost)
    assert left(people) == (1.5, 0)


def test_a_list_that_is_empty_is_no_list():
    with pytest.raises(PlanError, match="list the values"):
        wpinq.table(protected(), "town", categories={"town": []}, epsilon=1, delta="1e-6")
