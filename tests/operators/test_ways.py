"""Ways to the owner: tables that name no person, counted by who owns their rows.

Kinds: pairs of a row and an owner held against their definition (many, odd, null, equal rows; a row of two owners; two
hops); neighbours by whole persons, over pairs and over plans with joins along the way; wrong rules for pairs, each of
which the search finds; what is refused; versions. Found, while it was built: a table took the name of its ledger.
"""

import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import polars as pl
import pytest
from depth import deeper, often
from strategies import evaluate, run_flow, same

import wpinq
from wpinq.core.plan.node import sources
from wpinq.core.plan.stability import sensitivities
from wpinq.core.pricing.sensitivity import ledger_sensitivities
from wpinq.errors import ChangedError, LedgerError, PlanError, SourceError
from wpinq.sources import open_source, owned
from wpinq.testing.evaluation import leaves

ORDERS = {"o_key": int, "cust": str, "prio": str}
ITEMS = {"l_id": int, "l_key": int, "n": int}
NOTES = {"item": int, "text": str}


def opened(tables, ledger=None, kinds=(ORDERS, ITEMS), most=5, **period):
    """Orders name customers, who may be protected in a period each; items have an order, notes have an item."""
    one = {"version": "1", "ledger": ledger}
    orders = wpinq.protect(tables["orders"], 10**6, columns=kinds[0], unit=wpinq.users("cust", most, **period),
                           name="orders", delta="0.1", **one)  # fmt: skip
    items = wpinq.protect(tables["items"], columns=kinds[1], name="items", **one,
                          unit=wpinq.users(through=("l_key", orders, "o_key"), at_most=most))  # fmt: skip
    notes = wpinq.protect(tables["notes"], columns=NOTES, name="notes", **one,
                          unit=wpinq.users(through=("item", items, "l_id"), at_most=most))  # fmt: skip
    return orders, items, notes


def drawn(draw):
    """Rows of the tables: several owners of a key, keys without an owner, equal rows, nulls."""
    keys, whom = [1, 2, 3, 4, None], ["p", "q", "r", "s", None]
    few = lambda make, most: [make() for _ in range(draw.randrange(most))]  # noqa: E731
    return {
        "orders": few(lambda: (draw.choice(keys[:3] + keys[4:]), draw.choice(whom), draw.choice("xy")), 9),
        "items": few(lambda: (draw.choice(keys), draw.choice(keys), draw.randrange(3)), 9),
        "notes": few(lambda: (draw.choice(keys), draw.choice("ab")), 9),
    }


def without(tables, person):
    """The same without the owner rows of one person; what they own stays."""
    return {**tables, "orders": [row for row in tables["orders"] if row[1] != person]}


def paired(rows, place, owners):
    """Each row with each owner of its key: the definition."""
    whose = {(key, owner) for key, owner in owners if key is not None}
    return [(*row, owner) for row in rows for key, owner in whose if row[place] == key]


def defined(tables):
    items = paired(tables["items"], 1, [(key, cust) for key, cust, _ in tables["orders"]])
    return {**tables, "items": items, "notes": paired(tables["notes"], 0, [(row[0], row[-1]) for row in items])}


def read(tables, share=(0, 1)):
    """The same as it is read."""
    orders = open_source(tables["orders"], columns=ORDERS)
    items = owned.through(open_source(tables["items"], columns=ITEMS), orders, ("l_key", "orders", "o_key"), "cust")
    notes = owned.through(open_source(tables["notes"], columns=NOTES), items, ("item", "items", "l_id"), "cust")
    found = {"orders": orders, "items": items, "notes": notes}
    return {
        name: [row for frame in one.batches(one.schema.names, share=share) for row in frame.rows()]
        for name, one in found.items()
    }


@deeper
def test_pairs_are_those_of_their_definition():
    draw = random.Random(1)
    for _ in range(often(40)):
        tables = drawn(draw)
        expected = {name: Counter(rows) for name, rows in defined(tables).items()}
        assert {name: Counter(rows) for name, rows in read(tables).items()} == expected
        shares = [read(tables, (i, 3)) for i in range(3)]
        assert {name: sum((Counter(one[name]) for one in shares), Counter()) for name in expected} == expected


def broken(draw):
    """What one person more changes of pairs, beside pairs of their own; None where that is nothing."""
    tables = drawn(draw)
    more, less = read(tables), read(without(tables, "p"))
    for name in ("items", "notes"):
        others = [Counter(row for row in found[name] if row[-1] != "p") for found in (more, less)]
        if others[0] != others[1] or any(row[-1] == "p" for row in less[name]):
            return tables, name
    return None


@deeper
def test_one_person_more_adds_pairs_of_their_own_and_changes_nobody_elses():
    draw = random.Random(2)
    assert not any(broken(draw) for _ in range(often(60)))


def one_owner(rows, owners):
    """Of several owners the first."""
    return rows.join(owners.sort(owned.OWNER).unique(owned.KEY, keep="first"), on=owned.KEY)


def sole_owners(rows, owners):
    """No row of several owners."""
    return rows.join(owners.unique(owned.KEY, keep="none"), on=owned.KEY)


def nobodys(rows, owners):
    """Rows without an owner as those of nobody."""
    return rows.join(owners, on=owned.KEY, how="left")


def shared_by_owners(rows, owners):
    """A row of several owners is a record of a number of them: here, of the last two."""
    return rows.join(owners.sort(owned.OWNER).group_by(owned.KEY).tail(2), on=owned.KEY)


@pytest.mark.parametrize("wrong", [one_owner, sole_owners, nobodys, shared_by_owners])
def test_wrong_pairs_are_found(monkeypatch, wrong):
    monkeypatch.setattr(owned, "owned", wrong)
    draw = random.Random(3)
    assert any(broken(draw) for _ in range(200))


PLANS = {
    "items": (lambda o, i, n: i.map("n"), 5),
    "owners": (lambda o, i, n: i.map("cust").distinct(), 1),
    "owners by number": (lambda o, i, n: i.group_by("cust", len, whole=True).map("value"), 1),
    "along the way": (lambda o, i, n: i.join_rows(o, left="l_key", right="o_key").map("prio"), 25),
    "owners along the way": (lambda o, i, n: i.join_rows(o, left="l_key", right="o_key").map("cust").distinct(), 1),
    "one order of a key": (
        lambda o, i, n: i.join_rows(o.at_most(5, per=("o_key", 1)), left="l_key", right="o_key").map("prio"), 5,
    ),
    "back": (lambda o, i, n: o.join_rows(i, left="o_key", right="l_key", how="left").map("prio"), 25),
    "two hops": (
        lambda o, i, n: n.join_rows(i, left="item", right="l_id").join_rows(o, left="l_key", right="o_key").map("prio"),
        125,
    ),
    "weighed": (lambda o, i, n: i.join(o, left="l_key", right="o_key").map("prio"), 10),
    "items of some orders": (
        lambda o, i, n: i.semijoin(o.filter("prio = 'x'"), left="l_key", right="o_key").map("n"), 5,
    ),
    "who notes and orders": (lambda o, i, n: n.map("cust").concat(o.map("cust")).distinct(), 1),
    "another key": (lambda o, i, n: i.limit("n").join_rows(n.limit("item"), left="n", right="item").map("text"), 20),
}  # fmt: skip


@pytest.fixture(scope="module")
def empty():
    return opened({"orders": [], "items": [], "notes": []})


def moved(plan, *given):
    """How far it is from one to the other of some tables, in all and in one bin."""
    found = [evaluate(plan, *(one[source.data.name] for source in leaves(plan))) for one in given]
    each = [abs(Fraction(found[0].get(bin_, 0)) - found[1].get(bin_, 0)) for bin_ in {**found[0], **found[1]}]
    return sum(each), max(each, default=0)


@deeper
@pytest.mark.parametrize("name", PLANS)
def test_one_person_moves_a_plan_no_further_than_is_claimed(empty, name):
    make, claimed = PLANS[name]
    plan = make(*empty)
    ((whole, one, _),) = ledger_sensitivities(plan._node).values()
    fine = plan._node.resolution
    assert Fraction(whole, fine) == claimed
    assert sum(sensitivities(plan._node).values()) * fine >= whole
    draw = random.Random(4)
    for _ in range(often(40)):
        tables = drawn(draw)
        all_, bin_ = moved(plan, defined(tables), defined(without(tables, "p")))
        assert all_ * fine <= whole
        assert bin_ * fine <= one


def test_a_join_along_the_way_has_the_owner_in_its_key(empty):
    """Key 5 is p's and 10,000 others': on the key alone each of p's 20 items would meet 10,001 orders."""
    orders, items, _ = empty
    joined = items.join_rows(orders, left="l_key", right="o_key")
    assert joined._node.title == "join_rows(l_key = o_key, cust)"
    written = items.join_rows(orders, left=["l_key", "cust"], right=["o_key", "cust"])
    assert written._node.title == joined._node.title
    many = [(5, f"other {n}", "x") for n in range(100)] + [(5, "p", "x")]
    tables = {"orders": many, "items": [(n, 5, n) for n in range(20)], "notes": []}
    assert moved(joined.map("prio"), defined(tables), defined(without(tables, "p")))[0] <= 25
    pairs = defined(tables)
    assert sum(evaluate(joined.map("cust"), pairs["items"], pairs["orders"]).values()) == 101 * 5, "of each owner five"
    with pytest.raises(PlanError, match="nothing bounds how many records of one key"):
        items.map("l_key, n").join_rows(orders, left="l_key", right="o_key")


def insist_that_the_engine_agrees(plan, given):
    assert same(run_flow(plan, 3), plan._node, evaluate(plan, *(given[one.data.name] for one in leaves(plan))))


@deeper
@pytest.mark.parametrize("name", ["along the way", "two hops", "back", "items of some orders"])
def test_engine_and_definition_agree(name):
    draw = random.Random(5)
    for _ in range(often(3)):
        tables = drawn(draw)
        insist_that_the_engine_agrees(PLANS[name][0](*opened(tables)), defined(tables))


def test_a_query_joins_along_the_way_and_counts_pairs():
    tables = {
        "orders": [(1, "p", "x"), (1, "q", "y"), (2, "p", "x"), (3, None, "y")],
        "items": [(1, 1, 0), (1, 1, 0), (2, 2, 1), (3, 9, 1), (4, None, 1), (5, 3, 2)],
        "notes": [(1, "a"), (2, "a"), (4, "b")],
    }
    orders, items, notes = opened(tables)
    given = {"orders": orders, "items": items, "notes": notes}
    ask = {"epsilon": 10**4, "keys": ["x", "y"]}
    along = "SELECT prio, COUNT(*) FROM items i JOIN orders o ON i.l_key = o.o_key GROUP BY prio ORDER BY prio"
    assert wpinq.sql(along, given, **ask).rows == (("x", 3), ("y", 3))
    hops = "SELECT prio, COUNT(*) FROM notes n JOIN items i ON n.item = i.l_id JOIN orders o ON i.l_key = o.o_key"
    assert wpinq.sql(f"{hops} GROUP BY prio ORDER BY prio", given, **ask).rows == (("x", 3), ("y", 2))
    people = "SELECT COUNT(DISTINCT i.cust) FROM items i JOIN orders o ON i.l_key = o.o_key WHERE prio = 'x'"
    assert wpinq.sql(people, given, epsilon=10**4).rows == ((1,),)
    whose = "SELECT prio, COUNT(*) FROM orders o WHERE {} GROUP BY prio ORDER BY prio"
    for condition, expected in (
        ("EXISTS (SELECT * FROM items i WHERE i.l_key = o.o_key AND i.n < 2)", (2, 1)),
        ("o_key IN (SELECT l_key FROM items WHERE n > 0)", (1, 1)),
        ("NOT EXISTS (SELECT * FROM items i WHERE l_key = o_key AND n > 0)", (1, 1)),
    ):
        found = wpinq.sql(whose.format(condition), given, **ask)
        assert found.rows == (("x", expected[0]), ("y", expected[1]))
    unnamed = "SELECT COUNT(DISTINCT cust) FROM items JOIN orders ON l_key = o_key"
    assert wpinq.sql(unnamed, given, epsilon=10**4).rows == ((2,),), "cust of orders, where it is written"
    answer = wpinq.sql("SELECT COUNT(*) FROM items", given, epsilon=10**4)
    assert answer.rows == ((6,),)
    assert "as owner of records, found by l_key in orders" in str(answer.about)


def test_what_a_way_asks_for():
    orders, items, _ = opened({"orders": [], "items": [], "notes": []})
    plain = wpinq.protect([], 1, columns=ORDERS)
    with pytest.raises(PlanError, match="as protect"):
        wpinq.users(through=("l_key", plain, "o_key"), at_most=3)
    for odd in ("l_key", ("l_key",), ("l_key", orders, 3), (3, orders), ("l_key", "orders"), ("a", orders.map("cust"))):
        with pytest.raises(PlanError, match=r"users\(through"):
            wpinq.users(through=odd, at_most=3)
    with pytest.raises(PlanError, match="goes without"):
        wpinq.users("cust", through=("l_key", orders), at_most=3)
    with pytest.raises(PlanError, match="which is that of the table of owners"):
        wpinq.users(through=("l_key", orders, "o_key"), at_most=3, period=2, at="n")

    def table(columns, through, **more):
        unit = wpinq.users(through=through, at_most=3)
        return wpinq.protect([], columns=columns, name="t", unit=unit, **more)

    for columns, through, why in (
        ({"key": int}, ("nope", orders, "o_key"), "no column 'nope'"),
        ({"key": int}, ("key", orders), "no column 'key'"),
        ({"key": str}, ("key", orders, "o_key"), "declare one type"),
        ({"key": int, "cust": str}, ("key", orders, "o_key"), "of its own"),
    ):
        with pytest.raises(PlanError, match=why):
            table(columns, through)
    for name in ("key", "cust"):
        with pytest.raises(PlanError, match="tells apart"):
            table({"key": int}, ("key", orders, "o_key"), derive={name: "1"})
    with pytest.raises(PlanError, match="through= is for tables"):
        wpinq.live(ITEMS, budget=1, unit=wpinq.users(through=("l_key", orders, "o_key"), at_most=3))
    frame = pl.DataFrame({"o_key": [1], "cust": ["p"]}).to_arrow()
    stream = wpinq.protect(frame.to_reader(), 1, unit=wpinq.users("cust", 3), name="stream")
    assert table({"key": int}, ("key", stream, "o_key")).columns == ("key", "cust")
    assert len(orders.budget.questions) == 0
    assert items.budget.total == 10**6


def test_all_tables_of_a_way_are_of_one_ledger(tmp_path):
    tables = {"orders": [(1, "p", "x")], "items": [(1, 1, 0)], "notes": []}
    orders, items, _ = opened(tables, ledger=tmp_path / "L")
    items.map("n").measure(1), orders.map("prio").measure(1)
    assert orders.budget.spent == 2
    with pytest.raises(PlanError, match="has another ledger"):
        wpinq.protect([], 5, columns=ITEMS, name="items", ledger=tmp_path / "other",
                      unit=wpinq.users(through=("l_key", orders, "o_key"), at_most=3))  # fmt: skip
    assert not (tmp_path / "other").exists()
    with pytest.raises(LedgerError, match="whom it protects is fixed"):
        wpinq.protect([], columns={**ITEMS, "cust": str}, name="items", ledger=tmp_path / "L",
                      unit=wpinq.users("cust", at_most=3))  # fmt: skip
    with pytest.raises(LedgerError, match="whom it protects is fixed"):
        wpinq.protect([], columns=ITEMS, name="items", ledger=tmp_path / "L",
                      unit=wpinq.users(through=("n", orders, "o_key"), at_most=3))  # fmt: skip
    assert wpinq.core.ledger.Ledger.existing(tmp_path / "L").unit.startswith(
        "user (cust); owner (cust of orders by l_key = o_key) in items; owner (cust of items by item = l_id, of orders"
    )


def test_a_way_is_no_column_of_its_name(tmp_path):
    """What a ledger holds of a way is the declaration, so it is read in one way alone."""
    orders, _, _ = opened({"orders": [], "items": [], "notes": []}, ledger=tmp_path / "L")
    led = wpinq.users(through=("l_key", orders, "o_key"), at_most=3)
    odd = wpinq.users("cust of orders by l_key = o_key", at_most=3)
    assert (led.whom, odd.whom) == ("owner (cust of orders by l_key = o_key)", f"user ({odd.column})")
    spaced = replace(led, way=(("l key", "orders by x = y, of b", "o_key"),))
    assert spaced.whom == "owner (cust of 'orders by x = y, of b' by 'l key' = o_key)"


def test_the_version_of_a_table_is_those_of_all_along_its_way(tmp_path):
    (tmp_path / "items.csv").write_text("l_key,n\n1,3\n2,4\n")

    def items(rows, version):
        (tmp_path / "orders.csv").write_text("o_key,cust\n" + rows)
        orders = wpinq.protect(tmp_path / "orders.csv", 9, unit=wpinq.users("cust", 3), version=version, name="orders",
                               columns={"o_key": int}, ledger=tmp_path / "L")  # fmt: skip
        return wpinq.protect(tmp_path / "items.csv", columns={"l_key": int}, ledger=tmp_path / "L",
                             unit=wpinq.users(through=("l_key", orders, "o_key"), at_most=3))  # fmt: skip

    first = items("1,p\n", "1")
    first.map("l_key").measure(1).observe(1)
    assert sources(first._node)[0].version == "items.csv, orders 1"
    assert items("1,p\n", "1").budget.spent == 1
    with pytest.raises(ChangedError):
        items("2,p\n", "1")
    again = items("2,p\n", "2")
    again.map("l_key").measure(1).observe(1)
    assert again.budget.spent == 2
    (tmp_path / "orders.csv").write_text("o_key,cust\n3,q\n")
    with pytest.raises((ChangedError, SourceError)):
        again.map("n").measure(1).observe(3)


def test_rows_without_an_owner_are_told_to_the_curator():
    rows = open_source(pl.DataFrame({"key": [1, 2, None, 1], "n": [1, 2, 3, 4]}))
    owners = open_source(pl.DataFrame({"key": [1, 1, None], "who": ["p", "q", "r"]}))
    assert owned.through(rows, owners, ("key", "o", "key"), "who").without_owner() == (4, 2)
