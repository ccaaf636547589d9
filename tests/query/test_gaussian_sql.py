"""SQL with Gaussian noise: one rho for the whole query, in all tables of a ledger; intervals of its law."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

import wpinq
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.ledger.sums.renyi import pure_within
from wpinq.core.plan.node import sources

ONE = Secret(bytes(range(32)))
PERSON = wpinq.users("user", at_most=4)
FRAME = pl.DataFrame({"user": [f"u{i % 900}" for i in range(3000)], "page": [f"p{i % 300}" for i in range(3000)],
                      "size": [i % 11 for i in range(3000)]})  # fmt: skip
PAGES = [f"p{i}" for i in range(300)]
GAUSSIAN = {"mechanism": "gaussian"}


def table(name="views", frame=FRAME, unit=PERSON, **promise):
    promise = promise or {"rho": 100, "delta": "1/10"}
    return wpinq.protect(frame, secret=ONE, version="1", unit=unit, name=name, **promise)


def ledger(one):
    return sources(one._node)[0].ledger


@pytest.mark.parametrize(
    "asked", [{"epsilon": "1/2"}, {"epsilon": "1/2", "at_most": "auto"}, {"rho": "1/3", **GAUSSIAN}]
)
@pytest.mark.parametrize("query", [
    "SELECT page, COUNT(*) AS n, COUNT(DISTINCT user) AS u FROM v GROUP BY page",
    "SELECT page, COUNT(*) AS n, MEDIAN(size) AS m, SUM(size) AS s FROM v GROUP BY page",
])  # fmt: skip
def test_explain_tells_the_rho_that_a_ledger_of_rho_is_charged_for_every_noise(query, asked):
    v = table()
    asked = {**asked, "keys": PAGES, "bounds": {"size": (0, 10)} if "SUM" in query else None}
    told = wpinq.sql(f"EXPLAIN {query}", {"v": v}, **asked).frame
    wpinq.sql(query, {"v": v}, **asked)
    assert told["rho"].sum() == pytest.approx(float(ledger(v).divergence), rel=1e-9)


@pytest.mark.parametrize("query", [
    "SELECT page, COUNT(*) AS n FROM v GROUP BY page",
    "SELECT page, COUNT(*) AS n, AVG(size) AS a, COUNT(DISTINCT user) AS u FROM v GROUP BY page",
    "SELECT page, SUM(size) AS s, STDDEV(size) AS d, MEDIAN(size) AS m, MAX(size) AS x FROM v GROUP BY page",
])  # fmt: skip
def test_a_query_costs_its_rho_and_no_more(query):
    v = table()
    answer = wpinq.sql(query, {"v": v}, rho="1/3", keys=PAGES, bounds={"size": (0, 10)}, **GAUSSIAN)
    assert Fraction(1, 3) * Fraction(999999, 10**6) < ledger(v).divergence <= Fraction(1, 3)
    parts = len(answer.measurements)
    assert {one.rho for one in answer.measurements} <= {Fraction(1, 3) / parts, 0}
    chosen = [one.epsilon for one in answer.measurements if not one.rho]
    assert all(one == pure_within(Fraction(1, 3) / parts, None) for one in chosen)
    assert len(chosen) == query.count("MEDIAN") + query.count("MAX")


def test_intervals_are_of_the_law():
    """300 counts; binomial tails, false alarm 1e-6 each. The steps of counts leave up to 2% more."""
    answer = wpinq.sql("SELECT page, COUNT(*) AS n, SUM(size) AS s FROM v GROUP BY page ORDER BY page",
                       {"v": table()}, rho="1/50", keys=PAGES, bounds={"size": (0, 10)}, **GAUSSIAN)  # fmt: skip
    truth = FRAME.filter(pl.col("user").is_not_null()).group_by("page").agg(pl.len(), pl.sum("size")).sort("page")
    assert answer.cost == {"delta": 0.0, "rho": 0.02}
    for place, name in ((1, "len"), (2, "size")):
        values = np.array([row[place] for row in answer.rows])
        ends = np.array([row[place] for row in answer.intervals])
        true = truth[name].to_numpy()
        held = int(((ends[:, 0] <= true) & (true <= ends[:, 1])).sum())
        assert binom.cdf(held, 300, 0.95) > 1e-6
        assert binom.sf(held, 300, 0.98) > 1e-6
        wide = float(answer.measurements[place - 1].scale) * (10 if place == 2 else 1)
        assert (values - true).std() == pytest.approx(wide, rel=0.2)


def test_tables_of_one_ledger_pay_for_the_sum_of_moves(tmp_path):
    """A person in both tables moves through both: one rho is of all that the person moves."""
    place = tmp_path / "ledger"
    visits = wpinq.protect(FRAME, rho=5, delta="1/10", ledger=place, unit=PERSON, name="visits", version="1")
    users = pl.DataFrame({"user": [f"u{i}" for i in range(900)], "town": ["n", "s"] * 450})
    people = wpinq.protect(users, ledger=place, unit=wpinq.users("user", at_most=1), name="people", version="1")
    query = "SELECT town, COUNT(*) AS n FROM visits JOIN people USING (user) GROUP BY town"
    answer = wpinq.sql(query, {"visits": visits, "people": people}, rho="1/2", keys=["n", "s"], **GAUSSIAN)
    # one person's visits, each with the one row of the person: both tables together move up to 4 rows
    assert float(answer.measurements[0].scale) ** 2 == pytest.approx(4**2 / (2 * 0.5))
    assert ledger(visits).divergence == Fraction(1, 2)
    assert answer.cost["rho"] == 0.5


def test_epsilon_and_delta_of_a_whole_query():
    """Three counts share one rho; dividing epsilon and delta by three would cost more of the budget."""
    renyi = {"budget": 1, "delta": "1e-6", "accounting": "renyi"}
    v = table(unit=wpinq.users("user", at_most=100, per=("page", 1)), **renyi)
    query = "SELECT page, COUNT(*) AS n, COUNT(size) AS m, COUNT(DISTINCT size) AS k FROM v GROUP BY page"
    asked = {"epsilon": 1, "delta": "1e-6", "keys": PAGES}
    answer = wpinq.sql(query, {"v": v}, mechanism="best", **asked)
    assert all(one.rho for one in answer.measurements)
    with pytest.raises(wpinq.BudgetError):
        v.measure(rho="1e-5", mechanism="gaussian")
    few = table(unit=None, **renyi)
    assert not wpinq.sql(query, {"v": few}, mechanism="best", **asked).measurements[0].rho
    pure = table(budget=9, delta="1/10")
    assert not wpinq.sql(query, {"v": pure}, mechanism="best", **asked).measurements[0].rho
    with pytest.raises(wpinq.PlanError, match=r"delta= pays for publishing groups here.*give rho="):
        wpinq.sql(query, {"v": v}, mechanism="gaussian", epsilon=1, delta="1e-9")
    with pytest.raises(wpinq.PlanError, match=r"^sql\(mechanism='gaussian'\): no epsilon holds"):
        wpinq.sql(query, {"v": pure}, rho=1, keys=PAGES, **GAUSSIAN)
    with pytest.raises(wpinq.PlanError, match=r"^sql\(rho=\.\.\.\): is of Gaussian noise"):
        wpinq.sql(query, {"v": v}, rho=1, keys=PAGES)


def test_groups_are_published_above_a_threshold_of_its_law_and_accuracy_buys_rho():
    v = table(frame=pl.concat([FRAME, FRAME.with_columns(pl.lit("often").alias("page"))]))
    answer = wpinq.sql("SELECT page, COUNT(*) AS n FROM v GROUP BY page", {"v": v}, rho="1/4", delta="1e-6", **GAUSSIAN)
    assert [row[0] for row in answer.rows] == ["often"]
    assert 4 + 4 * float(answer.measurements[0].scale) < answer.threshold < 4 + 6 * float(answer.measurements[0].scale)
    near = wpinq.sql("SELECT COUNT(*) AS n FROM v", {"v": v}, within=50, **GAUSSIAN)
    assert 48 < (near.interval()[1] - near.interval()[0]) / 2 <= 50
    assert near.cost["rho"] > 0


def _divergence(shift, step, order):
    """Of discrete Laplace noise whose step costs that much, shifted; by summing its probabilities."""
    many = round(shift / step)
    at = np.arange(-int(60 / step) - many, int(60 / step) + many + 1)
    size = np.log((1 - np.exp(-step)) / (1 + np.exp(-step)))
    logs = order * (size - step * np.abs(at)) + (1 - order) * (size - step * np.abs(at - many))
    return float(np.log(np.exp(logs - logs.max()).sum()) + logs.max()) / (order - 1)


@pytest.mark.parametrize("how", [{"epsilon": "1/5"}, {"rho": "1/200", **GAUSSIAN}], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("query", [
    "SELECT town, COUNT(*) AS n FROM visits JOIN people USING (user) GROUP BY town",
    "SELECT town, COUNT(*) AS n, COUNT(people.user) AS k FROM visits LEFT JOIN people USING (user) GROUP BY town",
    "SELECT a.page AS town, COUNT(*) AS n FROM visits a JOIN visits b ON a.user = b.user GROUP BY a.page",
])  # fmt: skip
def test_tables_of_a_renyi_ledger_pay_for_what_a_person_moves(query, how, tmp_path):
    """A person with all that the bounds allow, by the counts with and without, and by sums over the noise's law."""
    visits, people = [("bob", "n"), ("eve", "s")], [("bob", "n"), ("eve", "s")]
    mine = [("ann", "n")] * 3, [("ann", "n")] * 2

    def tables(more, **promise):
        rows = [pl.DataFrame([*one, *own], schema=["user", name], orient="row")
                for one, own, name in ((visits, more[0], "page"), (people, more[1], "town"))]  # fmt: skip
        place = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        return {name: wpinq.protect(frame, ledger=place, unit=wpinq.users("user", at_most=most), name=name, version="1",
                                    **(promise if name == "visits" else {}))
                for name, frame, most in (("visits", rows[0], 3), ("people", rows[1], 2))}  # fmt: skip

    quiet = {"epsilon": 10**6, "keys": ["n", "s"]}
    true = [np.array([row[1:] for row in wpinq.sql(query, tables(more, budget=10**9), **quiet).rows])
            for more in (((), ()), mine)]  # fmt: skip
    asked = tables(((), ()), budget=1, delta="1e-6", accounting="renyi")
    answer, order = wpinq.sql(query, asked, keys=["n", "s"], **how), 22
    lost = 0.0
    for place, one in enumerate(answer.measurements):
        moves = [float(one) for one in np.abs(true[1] - true[0])[:, place] if one]
        if one.rho:
            lost += sum(order * move**2 / (2 * float(one.scale) ** 2) for move in moves)
        else:
            lost += sum(_divergence(move / float(one.scale), 1 / float(one.scale), order) for move in moves)
    assert 0 < lost <= float(ledger(asked["visits"]).divergence) * (1 + 1e-9)
