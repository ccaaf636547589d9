"""People whose records nothing bounds yet: what is known of them is measured, the rest is refused before any charge.

Kinds: figures of plans, refusals everywhere that a question can be asked, answers, neighbours (the random plans of
test_person_bound.py have units without a bound). Found, while it was built: nothing yet.
"""

import pytest
from strategies import evaluate, run_flow, same

import wpinq
from wpinq.core.plan.node import sources
from wpinq.core.plan.stability import sensitivities
from wpinq.errors import LedgerError, PlanError

COLUMNS = {"user": str, "page": str, "n": int}
RECORDS = [("ann", "a", n) for n in range(9)] + [("ann", "b", n) for n in range(3)] + [("bob", "b", 1)]


def views(records=RECORDS, ledger=None, unit=None, name="views"):
    return wpinq.protect(list(records), 100, columns=COLUMNS, unit=unit or wpinq.users("user"), name=name,
                         version="1", ledger=ledger, delta="1e-3")  # fmt: skip


KNOWN = {
    "people": (lambda v: v.map("user").distinct(), 1),
    "people by number of records": (lambda v: v.group_by("user", len, whole=True).map("value"), 1),
    "HAVING": (lambda v: v.group_by("user", len, whole=True).filter("value > 2").map("value"), 1),
    "a bound of the question": (lambda v: v.at_most(3).map("page"), 3),
    "one of each": (lambda v: v.limit("user", 2).map("page"), 2),
    "where and a bound": (lambda v: v.filter("page = 'b'").at_most(5, per=("page", 2)).map("page"), 5),
    "people of a part": (lambda v: v.partition("page", ["a"])["a"].map("user").distinct(), 1),
    "people of all kinds": (lambda v: v.map("user").distinct().concat(v.at_most(4).map("user")), 5),
}
UNKNOWN = {
    "records": lambda v: v.map("page"),
    "clamped records": lambda v: v.filter("n < 3").map("page"),
    "distinct pages": lambda v: v.map("page").distinct(),
    "people by page": lambda v: v.map("user, page").distinct().map("page"),
    "a bound of another key": lambda v: v.limit("page", 2).map("page"),
    "shave": lambda v: v.map("user").shave().map("index"),
    "people and records": lambda v: v.map("user").distinct().concat(v.map("user")),
    "a part": lambda v: v.partition("page", ["a"])["a"].map("user"),
    "a part and another": lambda v: v.partition("page", ["a"])["a"].map("user").concat(v.map("user")).distinct(),
    "prefixes of a person": lambda v: v.group_by("user", len).map("value"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_what_bounds_a_person_is_measured(name):
    plan, moves = KNOWN[name]
    asked = plan(views())
    assert sum(sensitivities(asked._node).values()) == moves
    measured = asked.measure(1)
    assert sum(cost.epsilon for _, charge in measured.quote.charges for cost in charge.costs) * measured.scale == moves
    assert same(run_flow(asked, 3), asked._node, evaluate(asked, RECORDS))


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_nothing_bounds_is_refused_before_a_charge(name):
    v = views()
    asked = UNKNOWN[name](v)
    told = r"nothing bounds how far one user of 'views' moves this. Keep a number of records of each \(at_most=\)"
    for ask in (
        lambda: asked.measure(1),
        lambda: asked.quote(1),
        lambda: asked.measure(within=3),
        lambda: asked.select(1, "1e-6"),
        lambda: asked.count(epsilon=1),
    ):
        with pytest.raises(PlanError, match=told):
            ask()
    assert v.budget.spent == 0
    assert "nothing bounds how far one user" in str(asked.explain(1))


def test_a_sum_of_clamped_records_is_not_bounded():
    """A thousand records, each clamped to 100, move a sum by 100,000."""
    with pytest.raises(PlanError, match="nothing bounds"):
        views().sum("n", bounds=(0, 100), epsilon=1)
    assert views().at_most(2).sum("n", bounds=(0, 100), epsilon=90).value >= 0


def test_a_query_has_a_bound_or_counts_people():
    tables = {"v": views()}
    people = "SELECT COUNT(DISTINCT user) FROM v"
    assert wpinq.sql(people, tables, epsilon=60).rows == ((2,),)
    records = "SELECT page, COUNT(*) FROM v GROUP BY page"
    with pytest.raises(PlanError, match="Keep a number of records"):
        wpinq.sql(records, tables, epsilon=1, keys=["a"])
    with pytest.raises(PlanError, match="Keep a number of records"):
        wpinq.sql(f"EXPLAIN {records}", tables, epsilon=1, keys=["a"])
    assert wpinq.sql(f"EXPLAIN {people}", tables, epsilon=1).frame["one unit moves"].to_list() == [1]
    assert wpinq.sql(records, tables, epsilon=39, keys=["b"], at_most={"v": 1}).rows[0][1] in (1, 2)


def test_a_ledger_of_people_takes_any_bound_and_none(tmp_path):
    views(ledger=tmp_path / "l").map("user").distinct().measure(1)
    bounded = views(ledger=tmp_path / "l", unit=wpinq.users("user", at_most=3))
    bounded.map("user").distinct().measure(1)
    assert bounded.budget.spent == 2, "a question about a sample is another question"
    with pytest.raises(LedgerError, match="whom it protects is fixed"):
        views(ledger=tmp_path / "l", unit=wpinq.users("page"))


def test_two_tables_move_by_the_sum_of_what_is_known(tmp_path):
    one, other = (views(ledger=tmp_path / "l", name=name) for name in ("one", "other"))
    both = one.concat(other)
    assert sum(sensitivities(both.map("user").distinct()._node).values()) == 1
    with pytest.raises(PlanError, match="nothing bounds"):
        both.measure(1)
    with pytest.raises(PlanError, match="nothing bounds"):
        one.at_most(3).concat(other).measure(1)
    mixed = one.at_most(3).map("user").concat(other.map("user").distinct())
    assert sum(sensitivities(mixed._node).values()) == 4


def test_a_bound_can_be_suggested_and_a_stream_needs_one():
    many = [(str(n % 500), "a", n) for n in range(3500)]
    assert wpinq.suggest_bound(views(many), epsilon=5) == 7
    with pytest.raises(PlanError, match="a stream needs a bound"):
        wpinq.live(COLUMNS, budget=1, unit=wpinq.users("user"))
    with pytest.raises(PlanError, match="goes with at_most"):
        wpinq.users("user", per=("page", 1))
    assert [str(data.unit) for data in sources(views()._node)] == ["user (user), all records"]
