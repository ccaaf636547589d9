"""Ways to the owner on the command line: tables of a query, one table with --owners, what check tells."""

import json

import polars as pl
import pytest

LOUD = 10_000
ORDERS = [(n, f"c{n % 40}", "xy"[n % 2]) for n in range(200)]
ITEMS = [(n, n % 260, n % 3) for n in range(900)]
NOTES = [(n, n % 950) for n in range(400)]
OWNED = [row for row in ITEMS if row[1] < 200]
WAY = ["--through", "items:l_key=orders.o_key", "--unit", "orders:cust"]
TABLES = ["--from", "items=items.csv", "--from", "orders=orders.csv"]
BUDGET = ["--epsilon", str(LOUD), "--budget", str(9 * LOUD), "--ledger", "L"]


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, columns, rows in (("orders", "o_key,cust,prio", ORDERS), ("items", "l_id,l_key,n", ITEMS),
                                ("notes", "id,item", NOTES)):  # fmt: skip
        text = "".join(",".join(map(str, row)) + "\n" for row in rows)
        (tmp_path / f"{name}.csv").write_text(f"{columns}\n{text}")
    return tmp_path


def test_a_query_joins_along_the_way(shop, wpinq):
    query = "SELECT prio, COUNT(*) AS n FROM items JOIN orders ON l_key = o_key GROUP BY prio ORDER BY prio"
    done = wpinq("sql", query, *TABLES, *WAY, "--at-most", "90", "--per", "orders:o_key=1", *BUDGET, "--delta", "1e-6",
                 "--json", "out.json")  # fmt: skip
    assert done.code == 0, done.err
    truth = {prio: sum(ORDERS[key][2] == prio for _, key, _ in OWNED) for prio in "xy"}
    assert dict(json.loads((shop / "out.json").read_text())["rows"]) == truth
    assert "one cust as owner of records, found by l_key in orders (that they own them" in done.out
    alone = wpinq("sql", "SELECT COUNT(*) AS n FROM items", *TABLES, *WAY, "--at-most", "90", *BUDGET[:2], "--ledger",
                  "L", "--json", "alone.json")  # fmt: skip
    assert alone.code == 0, alone.err
    assert json.loads((shop / "alone.json").read_text())["rows"] == [[len(OWNED)]]
    shown = wpinq("ledger", "show", "L").out
    assert "owner (cust of orders by l_key = o_key)" in shown


def test_ways_of_several_hops(shop, wpinq):
    done = wpinq("sql", "SELECT COUNT(*) AS n FROM notes", *TABLES, "--from", "notes=notes.csv", *WAY, "--through",
                 "notes:item=items.l_id", "--at-most", "90", *BUDGET, "--json", "out.json")  # fmt: skip
    assert done.code == 0, done.err
    truth = sum(item < 900 and ITEMS[item][1] < 200 for _, item in NOTES)
    assert json.loads((shop / "out.json").read_text())["rows"] == [[truth]]


def test_one_table_and_its_owners(shop, wpinq):
    one = ["--unit", "cust", "--through", "l_key=orders.o_key", "--owners", "orders=orders.csv", "--at-most", "90"]
    done = wpinq(
        "sql", "SELECT COUNT(*) AS n FROM items", "--from", "items=items.csv", *one, *BUDGET, "--json", "o.json"
    )
    assert done.code == 0, done.err
    assert json.loads((shop / "o.json").read_text())["rows"] == [[len(OWNED)]]
    told = wpinq("check", "items.csv", *one[:-2], "--at-most", "5")
    assert f"There are 40; 40 have records that are left out, and 200 of {len(OWNED)} records" in " ".join(
        told.out.split()
    )
    assert f"Of 900 records {900 - len(OWNED)} have no owner by --through, and are left out." in told.out
    assert json.loads(wpinq("check", "items.csv", *one, "--json").out)["without owner"] == 900 - len(OWNED)


def test_owners_in_periods(shop, wpinq):
    """An order of two months is owned in each; --period speaks of the table that names people."""
    rows = "".join(f"{key},c{key % 40},{1 + 20 * month}\n" for key in range(200) for month in range(1 + key % 2))
    (shop / "orders.csv").write_text(f"o_key,cust,day\n{rows}")
    window = ["--period", "orders:10", "--at", "orders:day", "--columns", "orders:o_key:int,cust,day:int"]
    typed = ["--columns", "items:l_id:int,l_key:int,n:int"]
    done = wpinq("sql", "SELECT COUNT(*) AS n FROM items", *TABLES, *WAY, *window, *typed, "--at-most", "900", *BUDGET,
                 "--json", "out.json")  # fmt: skip
    assert done.code == 0, done.err
    truth = sum(1 + key % 2 for _, key, _ in OWNED)
    assert json.loads((shop / "out.json").read_text())["rows"] == [[truth]]
    assert "one cust in one period of 10 by day as owner of records" in done.out
    one = ["--unit", "cust", "--period", "10", "--at", "day", "--through", "l_key=orders.o_key", "--owners",
           "orders=orders.parquet"]  # fmt: skip
    pl.read_csv(shop / "items.csv").write_parquet(shop / "items.parquet")
    pl.read_csv(shop / "orders.csv").write_parquet(shop / "orders.parquet")
    told = wpinq("check", "items.parquet", *one, "--at-most", "5")
    assert "have no owner by --through" in told.out, told.err


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--through", "l_key"], "write COLUMN=TABLE.COLUMN"),
        (["--through", "l_key=orders.o_key"], "say where orders is"),
        (["--through", "l_key=orders.o_key", "--owners", "people=orders.csv"], "--owners: write TABLE=INPUT"),
        (["--through", "l_key=orders.o_key", "--owners", "orders=orders.csv"], "give --unit too"),
        (["--owners", "orders=orders.csv", "--unit", "cust"], "--owners: write TABLE=INPUT"),
        (["--through", "l_key=orders.nope", "--owners", "orders=orders.csv", "--unit", "cust"], "no column 'nope'"),
        (["--through", "l_key=orders.o_key", "--period", "1d", "--at", "n"], "give --period to that one"),
    ],
)
def test_what_does_not_fit_is_refused(shop, wpinq, more, why):
    done = wpinq("check", "items.csv", *more)
    assert done.code == 2
    assert why in " ".join(done.err.split())


def test_ways_lead_somewhere(shop, wpinq):
    for way in ("items:l_key=nope.o_key", "items:l_key=items.l_id"):
        done = wpinq("sql", "SELECT COUNT(*) FROM items", *TABLES, "--unit", "orders:cust", "--through", way, *BUDGET)
        assert done.code == 2
        assert "leads to" in done.err
    assert not (shop / "L").exists()
