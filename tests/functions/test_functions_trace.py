"""The column way is Python's way: on random records of every kind, and not at all where it could not be."""

# ruff: noqa: C416, E711, E712, E721, E731, F507, F841, FURB110, FURB171, PLC3002, PLW0108, PLW0603, RET504, SIM300, UP031, UP032

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest
from depth import often, thin
from hypothesis import given, settings
from hypothesis import strategies as st

from wpinq.core.functions.bind import bind
from wpinq.core.functions.function import Dropped
from wpinq.core.functions.traced.columnar import Columnar
from wpinq.core.functions.traced.expression import PYTHON, RULES, Rule
from wpinq.core.functions.traced.trace import Formula, Standin
from wpinq.core.functions.tree import Node
from wpinq.core.records.kinds import read, series, write
from wpinq.core.records.schema import Kind, Schema
from wpinq.core.records.values import encode

W = "\0w"
SCHEMA = Schema.of(
    user=Kind.TEXT, page=Kind.TEXT, n=Kind.INT, m=Kind.INT, f=Kind.FLOAT, g=Kind.FLOAT, b=Kind.BOOL, x=Kind.BYTES,
    d=Kind.DATE, t=Kind.TIME, i=Kind.INSTANT, s=Kind.SPAN, v=Kind.ANY,
)  # fmt: skip
DAY, NOON, HOUR = dt.date(2020, 2, 29), dt.datetime(2020, 2, 29, 12), dt.timedelta(hours=1)
ZERO = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
PREFIX, BIG = "/a", 2**62


def local(page, n):
    short = page.strip().lower()
    more = n * 3 + 1
    return short, more % 7, page


def unreturned(page, n):
    checked = n // 0
    return page


TRACED = [
    lambda page: page.lower(),
    lambda page: page.upper() + "!",
    lambda page: (page.strip(), page.lstrip(), page.rstrip("/ ")),
    lambda page: page.strip("ab") == PREFIX,
    lambda page: page.startswith(PREFIX),
    lambda page: page.startswith(("/", "a", "é")),
    lambda page, user: page.endswith(user),
    lambda page: page.removeprefix("/").removesuffix("b"),
    lambda page: page.replace("a", "$0"),
    lambda page: (page[1:], page[:2], page[-2:], page[:-1], page[1:3], page[-3:-1], page[2:1], page[1:-1]),
    lambda page: (page[0], page[-1]),
    lambda page: (page.split("/")[1], page.split("a")[-1]),
    lambda page: len(page) * 2,
    lambda user, page: user + ":" + page,
    lambda page: PREFIX + page,
    lambda page, user: (page == user, page != user, page < user, page <= user, page > "a", "a" >= page),
    lambda n, m: (n + m, n - m, m),
    lambda n, m: n * m,
    lambda n, m: (n // m, n % m),
    lambda n: (n // 7, n % -7, -7 // n, 100 % n),
    lambda n: (-n, abs(n), n + BIG, 1 - n),
    lambda n, m: (n == m, n < m, n >= 3, BIG != n),
    lambda n, m: (n & m, n | 1, n ^ m),
    lambda n, page: (n > 3) & (page == "a") | (n == 0),
    lambda f, g: (f + g, f - g, f * g, f + 1, 0.5 * f),
    lambda f, g: (f == g, f < g, f >= 0, f != 0.5),
    lambda b: (b == True, b & True, b | False, b ^ True),
    lambda x: (x == b"a", x < b"b"),
    lambda d: (d.year, d.month, d.day, d.weekday(), d.isoweekday(), d < DAY, d == DAY),
    lambda t: (t.year, t.month, t.day, t.hour, t.minute, t.second, t.weekday(), t.date(), t >= NOON),
    lambda i: (i.year, i.hour, i.date(), i < ZERO),
    lambda s: (s < HOUR, s == HOUR),
    lambda page, v, f: (page, v, f, 1, "x", None, 0.5, DAY, True),
    lambda page: (page, page),
    lambda page: 1,
    local,
    unreturned,
]
VALUES = {
    Kind.INT: st.one_of(st.integers(-10, 10), st.integers(-(2**63), 2**63 - 1), st.sampled_from([2**62, -(2**63)])),
    Kind.FLOAT: st.one_of(st.floats(), st.sampled_from([0.0, -0.0, 0.5, 1.0])),
    Kind.TEXT: st.one_of(st.text("/ab é İßA\t\x1c$", max_size=6), st.text(max_size=4)),
    Kind.BOOL: st.booleans(),
    Kind.BYTES: st.binary(max_size=2),
    Kind.DATE: st.one_of(st.dates(), st.just(DAY)),
    Kind.TIME: st.one_of(st.datetimes(), st.just(NOON)),
    Kind.INSTANT: st.datetimes(timezones=st.just(dt.UTC)),
    Kind.SPAN: st.timedeltas(dt.timedelta(days=-(10**6)), dt.timedelta(days=10**6)),
    Kind.ANY: st.one_of(st.none(), st.integers(), st.text(max_size=3)),
}


def frame_of(records, schema):
    columns = [
        series(column.name, [write(record[place], column.kind) for record in records], column.kind)
        for place, column in enumerate(schema)
    ]
    return pl.DataFrame([*columns, pl.Series(W, range(len(records)), dtype=pl.Int64)])


def rows(frame, output):
    kinds = [column.kind for column in output]
    physical = frame.select(pl.all().to_physical()).rows()
    return {
        row[-1]: tuple(encode(read(value, kind)) for value, kind in zip(row, kinds, strict=False)) for row in physical
    }


def python(function, schema, reads, record):
    """What Python itself makes of a record, by an own binding of names to values."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    held = (read(write(value, column.kind), column.kind) for value, column in zip(record, schema, strict=True))
    values = dict(zip(schema.names, held, strict=True))
    return function(*(values[name] for name in names))


@thin(4)
@pytest.mark.parametrize("function", TRACED)
@settings(max_examples=often(6), deadline=None)
@given(data=st.data())
def test_the_column_way_is_python(function, data):
    bound = bind(function, SCHEMA, "map")
    assert isinstance(bound, Columnar)
    assert bound.note.startswith("traced: ")
    one = st.tuples(*(st.one_of(st.none(), VALUES[column.kind]) for column in SCHEMA))
    records = data.draw(st.lists(one, max_size=12))
    frame = frame_of(records, SCHEMA)
    found, mask = rows(bound.apply(frame, [W]), bound.output), bound.predicate(frame)
    for place, record in enumerate(records):
        try:
            result = python(function, SCHEMA, bound.reads, record)
        except Exception:
            assert place not in found
            assert mask[place] is False
            continue
        results = result if isinstance(result, tuple) else (result,)
        pairs = zip(results, bound.output, strict=True)
        if any(
            column.kind is Kind.INT and value is not None and not -(2**63) <= value < 2**63 for value, column in pairs
        ):
            assert place not in found  # what 64 bits cannot hold is dropped
        else:
            assert found[place] == tuple(map(encode, results))
            assert tuple(map(encode, bound.call(record))) == found[place]
        assert mask[place] is bool(result)
        assert bound.test(record) is bool(result)


counter = 0


def counts(page):
    global counter
    counter += 1
    return page


def branches(page):
    if page == "a":
        return 1
    return 2


def tries(page):
    try:
        return page.lower()
    except ValueError:
        return ""


def helper(page):
    return page.lower()


class Constants:
    prefix = "/a"


NOT_TRACED = [
    counts, branches, tries,
    lambda page: page is None,
    lambda page: page is not None,
    lambda page: page in {"a", "b"},
    lambda page: page in ("a",),
    lambda page: "a" in page,
    lambda page: isinstance(page, str),
    lambda page: type(page) == str,
    lambda page: not page,
    lambda page: page and "x",
    lambda page: page if page else "x",
    lambda page, n: page == "a" and n == 1,
    lambda n: 1 < n < 5,
    lambda page: f"{page}!",
    lambda page: "%s!" % page,
    lambda page: "none" % page,
    lambda page: "{}".format(page),
    lambda page: str(page),
    lambda page: hash(page),
    lambda page: id(page) == 0,
    lambda page: repr(page),
    lambda page: helper(page),
    lambda page: page == Constants.prefix,
    lambda page: [page],
    lambda page: ((page,), 1),
    lambda page: [letter for letter in page],
    lambda page: page == None,
    lambda page: page == 1,
    lambda page, n: page == n,
    lambda n: n == 1.0,
    lambda n: n + 0.5,
    lambda n: n / 2,
    lambda n: n**2,
    lambda n: ~n,
    lambda b: ~b,
    lambda b: b + 1,
    lambda n: n + 2**70,
    lambda f: f // 2,
    lambda f: f % 1,
    lambda f: -f,
    lambda n: round(n),
    lambda n: int(n),
    lambda page: page * 2,
    lambda page: page[::2],
    lambda page: page[0:n_outer],
    lambda page: page.split("/"),
    lambda page: page.split()[0],
    lambda page: page.title(),
    lambda page: page.encode(),
    lambda page: page.startswith("a", 1),
    lambda page: page.strip(""),
    lambda page: page.replace("", "-"),
    lambda v: v == 1,
    lambda v: v.lower(),
    lambda t: t + HOUR,
    lambda t, i: t == i,
    lambda d, t: d == t,
    lambda page: (lambda: page)(),
    lambda page: print(page),
]  # fmt: skip
n_outer = {1: 2}


@pytest.mark.parametrize("function", NOT_TRACED)
def test_what_columns_do_not_do_runs_plainly(function):
    bound = bind(function, SCHEMA, "map")
    assert not isinstance(bound, Columnar)
    assert bound.note == "plain Python on distinct records"
    assert counter == 0


def test_looking_at_columns_of_any_kind_only_passes_them_on():
    bound = bind(lambda v: v, SCHEMA, "map")
    assert bound.note == "columns: v"
    frame = frame_of([(None,) * 12 + (value,) for value in (0, 1, "", "a", None)], SCHEMA)
    assert bound.predicate(frame).to_list() == [False, True, False, True, False]


def test_a_record_outside_the_mask_does_not_change_the_way_of_the_others():
    bound = bind(lambda page: page.lower(), SCHEMA.select(["page"]), "map")
    alone = rows(bound.apply(frame_of([("ABC",)], bound.schema), [W]), bound.output)
    among = rows(bound.apply(frame_of([("ABC",), ("İÉ",), (None,), ("ẞ",)], bound.schema), [W]), bound.output)
    assert alone[0] == among[0]
    assert among == {0: (encode("abc"),), 1: (encode("İÉ".lower()),), 3: (encode("ẞ".lower()),)}


def test_a_wrong_rule_is_found_by_the_probes(monkeypatch):
    from wpinq.core.functions.traced import expression as rules

    assert isinstance(bind(lambda page: page.upper(), SCHEMA, "map"), Columnar)
    wrong = Rule(Kind.TEXT, lambda a: a.str.to_uppercase())  # no mask: "ß" and "ǅ" are safe in neither language
    monkeypatch.setitem(rules.RULES, ("upper", Kind.TEXT), Rule(Kind.TEXT, lambda a: a.str.to_lowercase()))
    assert not isinstance(bind(lambda page: page.upper(), SCHEMA, "map"), Columnar)
    monkeypatch.setitem(rules.RULES, ("add", Kind.INT, Kind.INT), Rule(Kind.INT, lambda a, b: a + b))
    assert not isinstance(bind(lambda n: n + 1, SCHEMA, "map"), Columnar)
    monkeypatch.setitem(rules.RULES, ("gt", Kind.FLOAT, Kind.FLOAT), Rule(Kind.BOOL, lambda a, b: a > b))
    assert not isinstance(bind(lambda f: f - f > 0.5, SCHEMA, "map"), Columnar)  # of infinity, no number
    monkeypatch.setitem(
        rules.RULES, ("mod", Kind.INT, Kind.INT), Rule(Kind.INT, lambda a, b: a - (a / b).cast(pl.Int64) * b)
    )
    assert not isinstance(bind(lambda n: n % 3, SCHEMA, "map"), Columnar)
    assert wrong.safe is None


def test_a_failure_of_columns_is_done_again_plainly(monkeypatch):
    bound = bind(lambda page: page.lower(), SCHEMA.select(["page"]), "map")
    frame = frame_of([("A",), ("b",)], bound.schema)
    wanted = rows(bound.apply(frame, [W]), bound.output)
    monkeypatch.setattr(Node, "expr", property(lambda node: pl.col("absent")))
    assert rows(bound.apply(frame, [W]), bound.output) == wanted
    assert bound.predicate(frame).to_list() == [True, True]


def test_stand_ins_say_nothing():
    stand_in = Standin.__new__(Standin)
    for look in (bool, len, iter, hash, int, float, str, repr, list, "{}".format, lambda s: 1 in s, lambda s: s()):
        with pytest.raises(Exception, match=r"^$"):
            look(stand_in)


def test_equal_meaning_has_equal_fingerprints():
    small = lambda page: page.lower()

    def same(page):
        low = page.lower()
        return low

    prints = {bind(function, SCHEMA, "map").fingerprint for function in (small, same)}
    assert len(prints) == 1
    others = [lambda page: page.upper(), lambda user: user.lower(), lambda page: page, lambda page: (page.lower(), 1)]
    assert len(prints | {bind(function, SCHEMA, "map").fingerprint for function in others}) == 5
    constants = [lambda n: n + 1, lambda n: n - 1, lambda n: n + 2, lambda f: f + 1, lambda b: b == True]
    assert len({bind(function, SCHEMA, "map").fingerprint for function in constants}) == 5


def test_what_is_computed_and_not_returned_still_drops():
    bound = bind(unreturned, SCHEMA, "map")
    assert bound.reads == ("page", "n")
    with pytest.raises(Dropped):
        bound.call((None, "a", *(None,) * 11))


def test_explain_shows_the_expression():
    assert bind(lambda page, n: (page.lower(), n), SCHEMA, "map").note == "traced: lower(page), n"
    assert bind(lambda page: page, SCHEMA, "map").note == "columns: page"


def test_every_operation_has_a_meaning_in_python():
    assert {name for name, *_ in RULES} == set(PYTHON)


@pytest.mark.parametrize("function", [one for one in TRACED if one is not unreturned])
def test_what_was_traced_is_a_function_again_that_traces_to_the_same(function):
    bound = bind(function, SCHEMA, "map")
    again = bind(Formula(bound.nodes, bound.reads), SCHEMA, "map", columns=list(bound.output.names))
    assert (again.nodes, again.reads, again.output, again.projection) == (
        bound.nodes, bound.reads, bound.output, bound.projection,
    )  # fmt: skip
    if {part for node in bound.nodes for part in node.parts()}.issuperset(bound.steps):
        assert again.fingerprint == bound.fingerprint
