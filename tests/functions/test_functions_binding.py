"""Which columns a function is given, what its outputs are called, and which functions are refused."""

# ruff: noqa: FURB110, PLW0108, RET503, RET504

from __future__ import annotations

import datetime as dt
import functools

import polars as pl
import pytest

from wpinq.core.functions.bind import bind
from wpinq.core.functions.function import Dropped
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.errors import PlanError

PAIR = Schema.of(user=Kind.TEXT, page=Kind.TEXT)
ONE = Schema.of(page=Kind.TEXT)
WIDE = Schema(tuple(Column(f"c{number}", Kind.INT) for number in range(40)))
RECORD = ("u", "p")


def outputs(function, schema=PAIR, **options):
    return bind(function, schema, "map", **options).output.names


def test_parameters_bind_by_name_in_any_order_and_among_many_columns():
    assert bind(lambda page, user: (page, user), PAIR, "map").call(RECORD) == ("p", "u")
    assert bind(lambda c39, c0: (c39, c0), WIDE, "map").call(tuple(range(40))) == (39, 0)


def test_parameters_bind_by_position_when_one_names_no_column():
    bound = bind(lambda u, page: (page, u), PAIR, "map")
    assert bound.call(RECORD) == ("p", "u")
    assert bound.output.names == ("page", "u")


def test_a_name_in_the_wrong_place_binds_by_position_when_another_is_unknown():
    assert bind(lambda page, x: page, PAIR, "map").call(RECORD) == ("u",)


@pytest.mark.parametrize(
    "function", [lambda x: x, lambda a, b, c: a, lambda: 1, lambda a, *, b: a, len, str.lower, int]
)
def test_a_wrong_number_of_parameters_is_refused(function):
    with pytest.raises(PlanError, match=r"map: .*(columns|names no column)"):
        bind(function, PAIR, "map")


def test_the_error_names_the_call_the_numbers_and_the_columns():
    with pytest.raises(
        PlanError, match=r"^filter: the function takes 3 arguments, and there are 2 columns \(user, page\)"
    ):
        bind(lambda a, b, c: a, PAIR, "filter")


@pytest.mark.parametrize("thing", [5, None, b"x", {"page": 1}])
def test_what_is_no_function_is_refused(thing):
    with pytest.raises(PlanError, match="map: takes a function"):
        bind(thing, PAIR, "map")


def test_star_takes_all_columns_or_those_that_are_left():
    assert bind(lambda *record: record[::-1], PAIR, "map").call(RECORD) == (("p", "u"),)
    assert bind(lambda first, *rest: (rest, first), PAIR, "map").call(RECORD) == (("p",), "u")


def test_defaults_are_kept_unless_they_name_a_column():
    assert bind(lambda page, times=2: page * times, PAIR, "map").call(RECORD) == ("pp",)
    assert bind(lambda page, times=2, user="x": page * times + user, PAIR, "map").call(RECORD) == ("ppu",)
    assert bind(lambda x, times=3: x * times, ONE, "map").call(("p",)) == ("ppp",)


def test_keyword_only_parameters_name_columns():
    assert bind(lambda page, *, user: user + page, PAIR, "map").call(RECORD) == ("up",)


def test_builtins_methods_partials_and_callable_objects():
    class Times:
        def __call__(self, page):
            return page + "!"

        def method(self, user, page):
            return page + user

    assert bind(str.upper, ONE, "map").call(("p",)) == ("P",)
    assert bind(len, ONE, "map").call(("page",)) == (4,)
    assert bind(int, ONE, "map").call(("12",)) == (12,)
    assert bind(functools.partial(lambda page, times: page * times, times=2), ONE, "map").call(("p",)) == ("pp",)
    assert bind(Times(), PAIR, "map").call(RECORD) == ("p!",)
    assert bind(Times().method, PAIR, "map").call(RECORD) == ("pu",)


def test_columns_that_the_code_never_touches_are_not_read():
    assert bind(lambda user, page: page if page else "x", PAIR, "map").reads == ("page",)
    assert bind(lambda u, p: p, PAIR, "map").reads == ("page",)
    assert bind(lambda *_: 1, PAIR, "map").reads == ()
    assert bind(lambda user, page: locals() and page, PAIR, "map").reads == ("user", "page")
    assert bind(lambda user, page: [user for _ in page], PAIR, "map").reads == ("user", "page")


def test_outputs_are_named_by_column_parameter_or_value():
    assert outputs(lambda page: page) == ("page",)
    assert outputs(lambda u, p: p) == ("p",)
    assert outputs(lambda page: page.lower()) == ("value",)
    assert outputs(lambda page: (page, 1)) == ("page", "value")
    assert outputs(lambda page: (1, page, 2)) == ("value_1", "page", "value_2")
    assert outputs(lambda page: (page, page)) == ("page", "page_2")
    assert outputs(lambda page: (page, len(page)), columns=["name", "size"]) == ("name", "size")


def test_a_written_out_tuple_makes_columns_and_any_other_is_one_value():
    def two_ways(page):
        if page:
            return page, 1
        return "none", 0

    def sometimes(page):
        if page:
            return page, 1

    def elsewhere(page):
        pair = (page, 1)
        return pair

    assert len(bind(two_ways, PAIR, "map").output) == 2
    assert len(bind(lambda page: (page, 1) if page else ("", 0), PAIR, "map").output) == 2
    for function in (sometimes, elsewhere, lambda page: tuple(page), lambda page: (page, 1) if page else page):
        assert [column.kind for column in bind(function, PAIR, "map").output] == [Kind.ANY]
    assert bind(elsewhere, PAIR, "map").call(RECORD) == (("p", 1),)
    assert bind(elsewhere, PAIR, "map", columns=["a", "b"]).call(RECORD) == ("p", 1)


def test_declared_columns_must_fit_what_is_returned():
    with pytest.raises(PlanError, match=r"map: the function returns 2 values and columns= names 1"):
        bind(lambda page: (page, 1), PAIR, "map", columns=["a"])
    with pytest.raises(PlanError, match="returns one value and columns= names 2"):
        bind(lambda page: page, PAIR, "map", columns=["a", "b"])
    with pytest.raises(PlanError, match="twice"):
        bind(lambda page: (page, 1), PAIR, "map", columns=["a", "a"])
    for wrong in ("ab", [], [1], {"a": list}, 3, ["\0weight"]):
        with pytest.raises(PlanError, match="columns="):
            bind(lambda page: page, PAIR, "map", columns=wrong)


def test_declared_types_convert_and_what_does_not_fit_is_dropped():
    def pick(page):
        return {"one": 1.0, "yes": True, "half": 0.5, "text": "1", "big": 2**63, "none": None}[page]

    whole = bind(pick, ONE, "map", columns={"n": int})
    assert whole.output == Schema.of(n=Kind.INT)
    assert [whole.call((word,)) for word in ("one", "yes", "none")] == [(1,), (1,), (None,)]
    for word in ("half", "text", "big", "absent"):
        with pytest.raises(Dropped):
            whole.call((word,))
    frame = pl.DataFrame({"page": ["one", "half", "none", "absent", "one"], "\0w": [1, 2, 3, 4, 5]})
    assert sorted(whole.apply(frame, ["\0w"]).rows(), key=str) == [(1, 1), (1, 5), (None, 3)]


@pytest.mark.parametrize(
    ("kind", "fits", "misfits"),
    [
        (float, [1, 0.5, True, None], ["1", b"x", 10**400, (1.0,)]),
        (str, ["a", "", None], [1, b"a", "\ud800"]),
        (bool, [True, 0, 1.0], [2, "True"]),
        (bytes, [b"a", bytearray(b"b")], ["a"]),
        (dt.date, [dt.date(2020, 1, 1)], [dt.datetime(2020, 1, 1), "2020-01-01"]),
        (dt.datetime, [dt.datetime(2020, 1, 1)], [dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)]),
        (Kind.INSTANT, [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)], [dt.datetime(2020, 1, 1)]),
        (dt.timedelta, [dt.timedelta(1)], [1, dt.timedelta.max]),
        (object, [1, "a", (1, "a")], [{1}, object(), dt.timedelta.max]),
    ],
)
def test_each_declared_kind(kind, fits, misfits):
    values = [*fits, *misfits]
    bound = bind(lambda n: values[n], Schema.of(n=Kind.INT), "map", columns={"v": kind})
    for place, value in enumerate(fits):
        assert bound.call((place,)) == (value,)
    for place in range(len(fits), len(values)):
        with pytest.raises(Dropped):
            bound.call((place,))
    frame = pl.DataFrame({"n": range(len(values)), "\0w": range(len(values))})
    assert sorted(bound.apply(frame, ["\0w"])["\0w"]) == list(range(len(fits)))


def test_generators_and_coroutines_are_refused_where_one_record_is_wanted():
    async def later(page):
        return page

    def several(page):
        yield page

    for function in (later, several):
        with pytest.raises(PlanError, match="yields"):
            bind(function, PAIR, "map")


def test_projections_keep_ranges_and_kinds():
    ranged = Schema((Column("page", Kind.TEXT), Column("index", Kind.INT, ranged=True)))
    bound = bind(lambda p, i: (i, p), ranged, "map")
    assert bound.projection == ("index", "page")
    assert bound.output == Schema((Column("i", Kind.INT, ranged=True), Column("p", Kind.TEXT)))
    for function in (lambda page, index: (index, index), lambda index: index + 1, lambda index: (index, 1)):
        bound = bind(function, ranged, "map")
        assert bound.projection is None
        assert bound.output.ranged == ()


def test_a_name_that_is_not_there_yet_is_refused_and_names_are_fixed_when_bound():
    with pytest.raises(PlanError, match="'defined_later'"):
        bind(lambda page: defined_later(page), PAIR, "map")  # noqa: F821
    bound = [bind(lambda page: page == wanted, PAIR, "filter") for wanted in ("a", "p")]  # noqa: B023
    assert [function.test(RECORD) for function in bound] == [False, True]
    assert bound[0].fingerprint != bound[1].fingerprint
