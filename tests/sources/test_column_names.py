"""A column's name changes no answer, or it is refused before anything is charged."""

import datetime as dt
import sqlite3
from contextlib import closing

import polars as pl
import pyarrow as pa
import pytest
from depth import thin

import wpinq
from wpinq.core.records.schema import Kind
from wpinq.errors import PlanError, SourceError

SURE = 10**5
ROWS = [(i % 7, f"u{i % 5}", f"p{i % 3}") for i in range(40)] * 3
NAMES = ["", " ", "len", "literal", "count", "index", "value", "value_1", "key", "weight", "code", "row", "column_0",
         "left", "right", "user_right", "a.b", "a\nb", '"', "'", "`", "\\", "$", "^", "^a", "a$", "**", "*a", "[0]",
         "ä", "😀", "null", "None", "group", "start", "end", "moved", "times", "before", "after", "x" * 99]  # fmt: skip
REFUSED = ["*", "^.*$", "^$", "^user$", "a\0b", "\0weight", "\ud800"]


def plans(views, odd):
    """Plans over (odd, user, page) that touch the odd column in every way that there is."""
    other = views.filter(lambda _, user, page: user == "u1")
    yield views.measure
    yield views.map(lambda first, user, page: first).measure
    yield views.map(lambda *record: record[0]).measure
    yield views.map("page").measure
    yield views.map(lambda first, user, page: (page, first), columns=["new", odd or "made"]).measure
    yield views.map(lambda first, user, page: [page][0] + str(first), columns=[odd or "made"]).measure
    yield views.distinct().map(lambda first, user, page: first).measure
    yield views.shave(name=odd + "2").map(lambda *record: record[-1]).measure
    yield views.concat(other).map(lambda first, user, page: first).measure
    yield views.union(other).measure
    yield views.intersect(other).map(lambda first, user, page: first).measure
    yield views.subtract(other).measure
    yield views.group_by(odd, len).measure
    yield views.group_by("page", lambda group: len(group) + 1, columns=[odd + "3"]).measure
    yield views.join(other, on=odd).map(lambda *record: record[0]).measure
    yield (
        views.join(other.map(lambda first, user, page: (first, page)), on="page")
        .map(lambda *record: record[:2])
        .measure
    )
    yield views.semijoin(other, on=odd).map(lambda first, user, page: first).measure
    yield views.limit(odd, 1000).map("user").measure
    yield views.partition(odd, [1, 2])[1].map("user").measure
    yield views.flat_map(lambda first, user, page: [first, first + 1], columns=[odd or "made"]).measure


def found(name, unit=None, keys=None, source=list):
    """What the plans find, of all bins or of these; at this epsilon every answer is exact."""
    columns = {name: int, "user": str, "page": str}
    views = (
        wpinq.protect(ROWS, budget=10**9, delta=0.1, columns=columns, unit=unit)
        if source is list
        else wpinq.protect(
            pl.DataFrame(dict(zip(columns, zip(*ROWS, strict=True), strict=True))), budget=10**9, unit=unit
        )
    )
    answers = []
    every = [measure(SURE, name=str(number)) for number, measure in enumerate(plans(views, name))]
    for number, asked in enumerate(every):  # the first one's run computes them all
        released = asked.release(delta="1e-7") if keys is None else asked.release(keys=keys[number])
        answers.append({row[0] if len(row) == 2 else row[:-1]: row[-1] for row in sorted(released, key=repr)})
    return answers


def near(one, other):
    """The same bins, and the same weights but for the noise of those that are not whole."""
    return list(one) == list(other) and list(one.values()) == pytest.approx(list(other.values()), abs=0.05)


@pytest.fixture(scope="module")
def plain():
    every = found("plain")
    assert sum(map(bool, every)) >= len(every) - 1
    return every, [list(one) for one in every]


@thin(12)
@pytest.mark.parametrize("name", NAMES)
def test_a_name_changes_no_answer(name, plain):
    for number, (one, other) in enumerate(zip(found(name), plain[0], strict=True)):
        assert near(one, other), f"plan {number}"


@pytest.mark.parametrize("unit", [None, wpinq.users("user", at_most=100), wpinq.users("user", shared=True)], ids=str)
def test_no_name_changes_no_answer_for_people_either(unit, plain):
    known = found("plain", unit, plain[1])
    assert any(sum(one.values()) for one in known)
    for source in (list, pl.DataFrame):
        assert all(map(near, found("", unit, plain[1], source), known))


def test_a_column_without_a_name_of_any_source(tmp_path):
    """pandas writes its index as one."""
    (tmp_path / "v.csv").write_text(",user,page\n0,ann,a\n1,bob,b\n")
    (tmp_path / "v.tsv").write_text("\tuser\tpage\n0\tann\ta\n1\tbob\tb\n")
    frame = pl.DataFrame({"": [0, 1], "user": ["ann", "bob"], "page": ["a", "b"]})
    frame.write_parquet(tmp_path / "v.parquet")
    with closing(sqlite3.connect(tmp_path / "v.db")) as connection, connection:
        connection.execute('CREATE TABLE v ("" INTEGER, user TEXT, page TEXT)')
        connection.executemany("INSERT INTO v VALUES (?, ?, ?)", frame.rows())
    given = [frame, frame.to_pandas(), frame.to_arrow(), frame.lazy(), tmp_path / "v.csv", tmp_path / "v.tsv",
             tmp_path / "v.parquet", wpinq.sqlite(tmp_path / "v.db", table="v")]  # fmt: skip
    seen = []
    for source in given:
        records = wpinq.protect(source, budget=10**6, ledger=tmp_path / f"records {len(seen)}")
        seen.append(source)
        assert records.map(lambda number, user, page: str(number)).measure(900).observe("0") == 1, source
        first = "0" if records._node.schema[""].kind is Kind.TEXT else 0
        assert records.group_by("", len).measure(900).observe((first, 1)) == 0.5, source
        views = wpinq.protect(source, budget=10**6, unit=wpinq.users("user", at_most=2))
        assert views.map("page").measure(900).observe("a") == 1, source
        asked = views.map(lambda number, user, page: str(number)).measure(900)
        assert asked.observe_many(["0", "1", "2"]).tolist() == [1, 1, 0], source


def test_a_live_column_without_a_name():
    views = wpinq.live({"": int, "user": str}, budget=10**6)
    asked = views.map(lambda number, user: number).measure(900)
    views.send([(7, "ann")])
    views.send(pl.DataFrame({"": [7], "user": ["ann"]}))
    views.advance()
    assert asked.observe(7) == 2
    views.close()


@pytest.mark.parametrize("name", REFUSED)
def test_names_that_stand_for_others_are_refused_before_a_charge(name, tmp_path):
    sources = [lambda: wpinq.protect(ROWS, budget=1, columns={name: int, "user": str, "page": str}),
               lambda: wpinq.live({name: int}, budget=1)]  # fmt: skip
    if "\ud800" not in name:
        path = tmp_path / "v.csv"
        path.write_text(f"{name},user,page\n0,ann,a\n")
        frame = pl.DataFrame({name: [0], "user": ["ann"]})
        sources += [lambda: wpinq.protect(path, budget=1), lambda: wpinq.protect(frame, budget=1)]
        if "\0" not in name:  # Arrow would end the name there
            sources += [lambda: wpinq.protect(pa.table({name: [0]}), budget=1)]
    for make in sources:
        with pytest.raises(SourceError, match="column"):
            make()
    views = wpinq.protect(ROWS, budget=1, columns={"n": int, "user": str, "page": str})
    for make in (lambda: views.shave(name=name), lambda: views.map("page", columns=[name]),
                 lambda: views.map(lambda page: page, columns={name: str}),
                 lambda: views.group_by("page", len, columns=[name]),
                 lambda: views.flat_map(lambda page: [page], columns=[name])):  # fmt: skip
        with pytest.raises(PlanError, match="column"):
            make().measure(1)
    assert views._node.data.ledger.spent()[0] == 0


@pytest.mark.parametrize("name", [3.5, None, 7, b"x", ("a",), dt.date(2026, 1, 1)])
def test_a_name_is_text(name):
    views = wpinq.protect(ROWS, budget=1, columns={"n": int, "user": str, "page": str})
    for make in (lambda: views.shave(name=name), lambda: views.map("page", columns=[name])):
        with pytest.raises(PlanError):
            make().measure(1)
    assert views._node.data.ledger.spent()[0] == 0
