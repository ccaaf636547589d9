"""A release whose records name nobody: the way to their owners, versions of both tables, what is refused."""

import datetime as dt
import warnings

import pytest

from tests.publish.test_release import given
from wpinq.apps.publish import ChangedError, Release
from wpinq.core.ledger import Ledger
from wpinq.errors import PlanError

NOW = dt.datetime(2026, 12, 2, 6, tzinfo=dt.UTC)
ORDERS = [(n, f"c{n % 9}", f"2026-0{1 + n % 3}-05") for n in range(60)]
ITEMS = [(n, n % 80, "ab"[n % 2], "2026-11-03 10:00:00") for n in range(600)]
QUESTION = {"name": "n", "sql": "SELECT kind, COUNT(*) AS n FROM data GROUP BY kind", "keys": ["a", "b"],
            "epsilon": 9000, "plot": False}  # fmt: skip
WAY = {"through": "l_key=orders.o_key", "at_most": 90}
OWNERS = {"orders": {"source": "orders.csv", "unit": {"column": "cust"}, "columns": {"o_key": "int"}}}
TYPES = {"l_id": "int", "l_key": "int"}


@pytest.fixture
def shop(tmp_path):
    write(tmp_path, "orders", "o_key,cust,day", ORDERS)
    write(tmp_path, "items-2026-11-03", "l_id,l_key,kind,time", ITEMS)
    return tmp_path


def write(home, name, columns, rows):
    text = "".join(",".join(map(str, row)) + "\n" for row in rows)
    (home / f"{name}.csv").write_text(f"{columns}\n{text}")


def release(home, data=(), period=()):
    own = {"source": "items-{date}.csv", "ledger": "L", "unit": WAY, "owners": OWNERS, "columns": TYPES, **dict(data)}
    file = given(data=own, budget={"epsilon": 50000, "delta": "1e-3"}, period={"every": "day", **dict(period)},
                 question=[QUESTION], sink=[{"directory": "pub/{date}"}])  # fmt: skip
    return Release(file, "shop", home, clock=lambda: NOW)


def truth(kind):
    return sum(key < 60 and own == kind for _, key, own, _ in ITEMS)


def rows(home, day="2026-11-03"):
    lines = (home / "pub" / day / "n.csv").read_text().splitlines()[1:]
    return {line.split(",")[0]: round(float(line.split(",")[1])) for line in lines}


def test_a_release_counts_pairs_and_says_whose_they_are(shop):
    one = release(shop)
    assert one.plan("2026-11-03").period == "2026-11-03"
    assert not (shop / "L").exists()
    one.run("2026-11-03")
    assert rows(shop) == {kind: truth(kind) for kind in "ab"}
    ledger = Ledger.existing(shop / "L")
    assert "owner (cust of orders by l_key = o_key)" in ledger.unit
    report = (shop / "pub/2026-11-03/report.md").read_text()
    assert "found by l_key in orders (that they own them, and not what the records say)" in report.replace("\\", "")
    spent = ledger.spent()[0]
    assert release(shop).run("2026-11-03") is not None
    assert Ledger.existing(shop / "L").spent()[0] == spent
    assert release(shop).verify("2026-11-03") == []


def test_who_owns_a_row_is_part_of_its_version(shop):
    release(shop).run("2026-11-03")
    write(shop, "orders", "o_key,cust,day", [(n, "c1", day) for n, _, day in ORDERS])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        release(shop).run("2026-11-03")
    assert any("changed since it was published" in str(one.message) for one in told)
    with pytest.raises(ChangedError):
        release(shop).verify("2026-11-03")


def test_periods_by_rows_and_owners_in_months(shop):
    write(shop, "items", "l_id,l_key,kind,time", [*ITEMS, *((n, n, "a", "2026-11-04 01:00:00") for n in range(10))])
    monthly = {"orders": {**OWNERS["orders"], "columns": {"o_key": "int", "day": "date"},
                          "unit": {"column": "cust", "period": "1mo", "at": "day"}}}  # fmt: skip
    data = {"source": "items.csv", "owners": monthly, "columns": {**TYPES, "time": "timestamp"}}
    for day in ("2026-11-03", "2026-11-04"):
        release(shop, data, {"at": "time"}).run(day)
    assert rows(shop) == {kind: truth(kind) for kind in "ab"}
    assert rows(shop, "2026-11-04") == {"a": 10, "b": 0}
    assert "in one window of 1mo by day" in Ledger.existing(shop / "L").unit


def test_several_hops(shop):
    write(shop, "notes-2026-11-03", "item,kind", [(n % 700, "ab"[n % 3 > 0]) for n in range(900)])
    owners = {**OWNERS, "items": {"source": "items-{date}.csv", "unit": {"through": "l_key=orders.o_key"},
                                  "columns": TYPES}}  # fmt: skip
    unit = {"through": "item=items.l_id", "at_most": 500}
    release(shop, {"source": "notes-{date}.csv", "owners": owners, "unit": unit, "columns": {"item": "int"}}).run(
        "2026-11-03"
    )
    kept = [n for n in range(900) if n % 700 < 600 and ITEMS[n % 700][1] < 60]
    assert rows(shop) == {"a": sum(n % 3 == 0 for n in kept), "b": sum(n % 3 > 0 for n in kept)}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"unit": {"through": "l_key=nope.o_key"}}, "leads to 'nope', which is no other table"),
        ({"unit": {"through": "l_key"}}, "write COLUMN=TABLE.COLUMN"),
        ({"unit": {**WAY, "column": "cust"}}, "goes without column and period"),
        ({"unit": {**WAY, "period": "1d", "at": "time"}}, "goes without column and period"),
        ({"unit": {}}, "name the column that tells people apart"),
        ({"owners": {"orders": {"source": "orders.csv"}}}, "names nobody"),
        ({"owners": {"orders": {"source": "orders.csv", "unit": {"through": "cust=orders.cust"}}}}, "no other table"),
        (
            {"owners": {"orders": {"sources": "orders.csv"}}},
            r"'sources' is not known in data.owners\[...\]; 'source' is",
        ),
        ({"columns": {"l_id": "int"}}, "declare one type"),
    ],
)
def test_what_does_not_fit_is_refused(shop, data, why):
    with pytest.raises(PlanError, match=why):
        release(shop, data).plan("2026-11-03")
    assert not (shop / "L").exists()
