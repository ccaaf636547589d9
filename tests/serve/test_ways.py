"""Data sets of a server whose records name nobody: opened after their owners, under the version of both."""

import datetime as dt

import pytest
from serving import serving

from wpinq.apps.serve.catalogue import opened
from wpinq.apps.serve.config import read
from wpinq.core.ledger import Ledger
from wpinq.errors import PlanError

FILE = """
[server]
port = 0

[data.items]
source = "items.csv"
ledger = "ledger"
unit = { through = "l_key=orders.o_key", at_most = 90 }
columns = { l_key = "int" }

[data.orders]
source = "orders.csv"
ledger = "ledger"
budget = 900000
delta = 1e-3
unit = { column = "cust", at_most = 90, per = { o_key = 1 } }
columns = { o_key = "int" }
version = "{date}"
"""
ORDERS = [(n, f"c{n % 9}", "xy"[n % 2]) for n in range(60)]
ITEMS = [(n % 80, "ab"[n % 3 > 0]) for n in range(600)]
COUNT = {"query": "SELECT kind, COUNT(*) AS n FROM items GROUP BY kind", "keys": ["a", "b"], "epsilon": "9000"}
JOIN = {"query": "SELECT prio, COUNT(*) AS n FROM items JOIN orders ON l_key = o_key GROUP BY prio", "keys": ["x", "y"],
        "epsilon": "9000"}  # fmt: skip
DAY = dt.timedelta(days=1)


def written(home, text=FILE):
    for name, columns, rows in (("orders", "o_key,cust,prio", ORDERS), ("items", "l_key,kind", ITEMS)):
        (home / f"{name}.csv").write_text(columns + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    (home / "site.toml").write_text(text)
    return home


def ask(site, token, body, **more):
    return site.ask(token, "POST", "/api/sql", {**body, "dry": False, **more})


def counts(found):
    return {key: round(value) for key, value in found.body["rows"]}


def test_questions_over_pairs_and_along_the_way(tmp_path, clock):
    with serving(written(tmp_path)) as site:
        token = site.token(cap=90000, data=("items", "orders"))
        truth = {kind: sum(key < 60 and own == kind for key, own in ITEMS) for kind in "ab"}
        assert counts(ask(site, token, COUNT)) == truth
        assert counts(ask(site, token, JOIN)) == {
            prio: sum(key < 60 and ORDERS[key][2] == prio for key, _ in ITEMS) for prio in "xy"
        }
        told = site.ask(token, "GET", "/api/measurements").body["data"]
        (items,) = [one for one in told if one["name"] == "items"]
        assert items["unit"]["column"] == "cust"
        assert "found by l_key in orders" in items["protects"]


def test_a_turn_of_the_owners_turns_what_they_own(tmp_path, clock):
    with serving(written(tmp_path)) as site:
        token = site.token(cap=90000, data=("items", "orders"))
        first = ask(site, token, COUNT)
        assert first.body["about"]["version"] == f"items.csv, orders {clock.now:%Y-%m-%d}"
        clock.set(clock.now)
        assert ask(site, token, COUNT).raw == first.raw, "nothing turns where the clock names nothing new"
        clock.set(clock.now + DAY)
        second = ask(site, token, COUNT)
        assert second.body["about"]["version"] == f"items.csv, orders {clock.now:%Y-%m-%d}"
        (tmp_path / "orders.csv").unlink()
        clock.set(clock.now + DAY)
        assert ask(site, token, COUNT, name="more").status == 503
        assert ask(site, token, COUNT, dry=True).status == 200, "what costs nothing says what it would have said"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("l_key=orders.o_key", "l_key=nope.o_key", "leads to 'nope', which is no other table"),
        ("l_key=orders.o_key", "l_key=items.l_key", "leads to 'items', which is no other table"),
        ('column = "cust", at_most = 90, per = { o_key = 1 }', 'through = "o_key=items.l_key"', "is no other table"),
        ('unit = { column = "cust", at_most = 90, per = { o_key = 1 } }', "", "names nobody"),
        ('source = "items.csv"\nledger = "ledger"', 'source = "items.csv"\nledger = "other"', "has another ledger"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, old, new, why):
    assert old in FILE
    with pytest.raises(PlanError, match=why):
        opened(read(written(tmp_path, FILE.replace(old, new)) / "site.toml"))


def test_a_server_may_choose_a_bound_when_it_opens_a_version(tmp_path):
    """For the curator's epsilon, once; analysts ask under the number that was chosen."""
    unit = 'unit = { column = "cust", at_most = 90, per = { o_key = 1 } }'
    auto = 'unit = { column = "cust", at_most = "auto", epsilon = 5000, bins = 2, asking = 9000 }'
    with serving(written(tmp_path, FILE.replace(unit, auto))) as site:
        assert Ledger.existing(tmp_path / "ledger").spent()[0] == 5000
        token = site.token(cap=90000, data=("orders",))
        found = ask(site, token, {**COUNT, "query": "SELECT COUNT(*) AS n FROM orders", "keys": None})
        assert round(found.body["rows"][0][0]) == 60
        assert "7 was chosen with epsilon 5000 for 2 bins" in str(found.body["about"])
