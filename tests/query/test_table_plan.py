"""Plans of tables: free, of public things alone; what is measured agrees, errs as was planned, and intervals hold."""

import json
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from depth import deeper, often

import wpinq
from wpinq.core.plan.node import sources
from wpinq.errors import BudgetError, PlanError, SourceError

LOUD = 10**6
RNG = np.random.default_rng(7)
PEOPLE = pl.DataFrame({
    "person": [f"p{i // 3}" for i in range(3000)],
    "region": pl.Series(RNG.choice(["north", "south", "east", None], 3000).tolist()),
    "age": RNG.integers(0, 4, 3000),
    "sex": RNG.choice(["f", "m"], 3000),
    "member": RNG.random(3000) < 0.3,
})  # fmt: skip
KINDS = {"region": ["north", "south"], "age": [0, 1, 2], "sex": ["f", "m"]}
TABLES = ["region", ("sex", "age"), ("region", "sex", "age"), ("member", "age"), ()]
NOISES = [{"epsilon": 1}, {"rho": "1/8", "mechanism": "gaussian"}]


def protected(data=PEOPLE, **more):
    return wpinq.protect(data, **{"budget": 10**9, **more})


def spent(people):
    ledger = sources(people._node)[0].ledger
    return ledger.promise.budget - ledger.remaining()


@pytest.mark.parametrize("tables", [TABLES, ["age"], [("age", "sex", "region"), "member"]])
def test_without_noise_tables_are_what_is_counted(tables):
    kinds = {name: KINDS[name] for name in KINDS if name in str(tables)}
    result = wpinq.plan_tables(protected(), tables, categories=kinds, epsilon=LOUD).measure()
    text = PEOPLE.with_columns(pl.exclude("person").cast(pl.String)).with_columns(
        pl.when(pl.col(name).is_in([str(value) for value in values])).then(name).otherwise(pl.lit("other")).alias(name)
        for name, values in KINDS.items()
    )
    for names, frame in result.tables.items():
        counted = {key: group.height for key, group in text.group_by(*names)} if names else {(): 3000}
        assert {row[: len(names)]: round(row[-3], 3) for row in frame.rows()} == {
            row[: len(names)]: counted.get(row[: len(names)], 0) for row in frame.rows()
        }
        assert frame.height == np.prod([len(result.plan.categories[name]) for name in names])


@pytest.mark.parametrize("terms", NOISES)
def test_a_plan_is_free_and_looks_at_no_record_and_what_it_measures_costs_its_budget(terms):
    budget = {"rho": 9} if "rho" in terms else {"budget": 9}
    people, nobody = wpinq.protect(PEOPLE, **budget), wpinq.protect(PEOPLE.clear(), **budget)
    plan, other = (wpinq.plan_tables(each, TABLES, categories=KINDS, **terms) for each in (people, nobody))
    assert plan.to_dict() == other.to_dict() and repr(plan) == repr(other)
    assert json.loads(json.dumps(plan.to_dict())) == plan.to_dict()
    before = people.budget if isinstance(people.budget, str) else repr(people.budget)
    assert sum(plan.shares.values()) == 1 and before == repr(people.budget)
    first = plan.measure()
    about = first.about["cost"]
    assert about["rho" if "rho" in terms else "epsilon"] == float(Fraction(terms.get("rho", terms.get("epsilon"))))
    after = repr(people.budget)
    assert after != before
    again = plan.measure()
    assert again.frame.equals(first.frame) and repr(people.budget) == after
    assert not plan.measure(name="again").frame.equals(first.frame)


def test_what_costs_more_than_is_left_is_charged_nothing():
    people = wpinq.protect(PEOPLE, budget=1)
    plan = wpinq.plan_tables(people, TABLES, categories=KINDS, epsilon=2)
    before = repr(people.budget)
    with pytest.raises(BudgetError):
        plan.measure()
    assert repr(people.budget) == before


@pytest.mark.parametrize("terms", NOISES)
@deeper
def test_cells_err_as_planned_and_intervals_hold(terms):
    """Nobody is in it, so all that is left is noise. Of 200 repetitions 0.95 hold: fewer than 170 by less than 1e-7."""
    people = protected(PEOPLE.clear(), **({"budget": None, "rho": 10**9} if "rho" in terms else {}))
    plan = wpinq.plan_tables(people, TABLES, categories=KINDS, **terms)
    times = often(200, 12)
    errors = {names: [] for names in plan.wanted}
    for repeat in range(times):
        result = plan.measure(name=f"repeat {repeat}")
        for names, frame in result.tables.items():
            errors[names].append(frame["count"].to_numpy())
    for names, rows in errors.items():
        cells = np.array(rows)
        assert (abs(cells) <= plan.halves[names]).mean() > 0.95 - 1.2 / np.sqrt(times)
        assert np.sqrt((cells**2).mean()) == pytest.approx(plan.errors[names], rel=4 / np.sqrt(times))
        assert np.isclose(cells[:, 0].std(), plan.errors[names], rtol=4 / np.sqrt(times))


@pytest.mark.parametrize("terms", NOISES)
def test_tables_agree_where_they_tell_the_same(terms):
    people = protected(**({"budget": None, "rho": 10**9} if "rho" in terms else {}))
    result = wpinq.plan_tables(people, TABLES, categories=KINDS, **terms).measure()
    fine = result.table(("region", "sex", "age"))
    for names in ("region", ("age", "sex")):
        sums = fine.group_by(names, maintain_order=True).agg(pl.col("count").sum())
        pair = result.table(names).join(sums, on=names)
        assert pair.height and np.allclose(pair["count"], pair["count_right"])
    assert np.allclose(fine["count"].sum(), result.table(())["count"].item())
    assert result.frame.height == sum(map(len, result.tables.values()))


def test_the_bound_on_a_person_widens_the_noise_and_not_the_shares():
    kinds = {"sex": ["f", "m"], "age": [0, 1, 2]}
    plans = [
        wpinq.plan_tables(protected(unit=wpinq.users("person")), ["sex", "age"], categories=kinds, epsilon=1, at_most=n)
        for n in (1, 3)
    ]
    assert plans[0].shares == plans[1].shares
    assert plans[1].errors[("sex",)] == pytest.approx(3 * plans[0].errors[("sex",)], rel=0.02)
    people, kinds = protected(unit=wpinq.users("person", at_most=3)), {"sex": ["f", "m"]}
    result = wpinq.plan_tables(people, ["sex"], categories=kinds, epsilon=LOUD, other=None).measure()
    assert result.table("sex")["count"].sum() == pytest.approx(3000) and "protects one person" in result.notes[0]


@pytest.mark.parametrize("terms", NOISES)
def test_each_aim_errs_least_by_its_measure(terms):
    people = protected(**({"budget": None, "rho": 10**9} if "rho" in terms else {}))
    tables = ["sex", ("age", "region")]
    cells, alike, worst = (
        wpinq.plan_tables(people, tables, categories=KINDS, aim=aim, **terms) for aim in ("cells", "tables", "max")
    )
    assert alike.errors["sex",] < cells.errors["sex",] and cells.rmse < min(alike.rmse, worst.rmse)
    assert max(worst.errors.values()) < min(max(plan.errors.values()) for plan in (cells, alike))


def test_gaussian_noise_is_of_residuals_unless_people_are_known_to_be_in_many_cells():
    """One record of a person and sex at the most: their moves of two cells are squares that add up."""
    kinds = {"sex": ["f", "m"], "age": [0, 1, 2]}
    tables = ["sex", ("sex", "age")]
    for per, kind in ((None, "residuals"), (("sex", 1), "margins")):
        people = protected(unit=wpinq.users("person", at_most=6, per=per), budget=None, rho=10**9)
        plan = wpinq.plan_tables(people, tables, categories=kinds, other=None, rho=1, mechanism="gaussian")
        assert plan.to_dict()["of"] == kind and repr(plan).startswith("residual" if plan.residual else "measured")
        result = plan.measure()
        sums = result.table(("sex", "age")).group_by("sex", maintain_order=True).agg(pl.col("count").sum())
        assert np.allclose(sums["count"], result.table("sex")["count"])


def test_many_tables_are_planned_shown_and_measured():
    names = [f"c{i}" for i in range(8)]
    people = wpinq.protect(pl.DataFrame({name: RNG.choice(["a", "b", "c"], 500) for name in names}), rho=10**6)
    pairs = [(a, b) for a in names for b in names if a < b]
    plan = wpinq.plan_tables(people, pairs, categories=dict.fromkeys(names, ("a", "b", "c")), rho=1,
                             mechanism="gaussian", other=None)  # fmt: skip
    assert "more: to_dict() has them" in repr(plan) and len(plan.to_dict()["tables"]) == 28
    result = plan.measure()
    assert len(result.tables) == 28 and result.table(("c0", "c7"))["count"].sum() == pytest.approx(500, abs=30)


def test_it_is_saved_with_what_describes_it(tmp_path):
    result = wpinq.plan_tables(protected(), TABLES, categories=KINDS, epsilon=LOUD).measure()
    result.save(tmp_path / "t.csv")
    result.save(tmp_path / "t.parquet")
    assert pl.read_parquet(tmp_path / "t.parquet").equals(result.frame)
    assert pl.read_csv(tmp_path / "t.csv", comment_prefix="#").height == result.frame.height
    assert "region" in repr(result) and "All tables agree" in repr(result)
    with pytest.raises(SourceError, match=r"\.parquet"):
        result.save(tmp_path / "t.xlsx")
    with pytest.raises(PlanError, match="no table of the plan"):
        result.table("sex")
    with pytest.raises(PlanError, match="was not measured"):
        result.cells(("sex", "region", "person"))
    with pytest.raises(PlanError, match="strictly between"):
        result.table("region", level=2)


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ({"tables": "age"}, "list the columns of each table"),
        ({"tables": []}, "list the columns of each table"),
        ({"tables": [()]}, "ask records.count"),
        ({"tables": [7]}, "a table is the name of a column"),
        ({"tables": [("sex", "sex")]}, "list of different names"),
        ({"tables": ["sex", ["sex"]]}, "there twice"),
        ({"tables": ["count"]}, "cannot be called 'count' here"),
        ({"tables": ["table"]}, "cannot be called 'table' here"),
        ({"tables": ["nope"], "categories": {"nope": ["f"]}}, "nope"),
        ({"tables": ["sex"], "categories": {"age": [1]}}, "no column of a table"),
        ({"tables": ["sex"], "categories": {}}, "list the values"),
        ({"tables": ["weight"], "categories": {"weight": ["1"]}}, "derive a column"),
        ({"tables": [f"c{i}" for i in range(16)]}, "16 columns, and 15 are the most"),
        ({"tables": [("sex", "region")], "categories": {"sex": [str(i) for i in range(2000)],
                                                        "region": [str(i) for i in range(2000)]}}, "more than"),
        ({"mechanism": "best", "delta": 1e-6}, "name the mechanism"),
        ({"mechanism": "gaussian", "delta": 1e-6}, "adds up epsilons"),
        ({"mechanism": "gaussian"}, "no epsilon holds"),
        ({"epsilon": None}, "give either"),
        ({"rho": 1}, "plan_tables"),
        ({"aim": "mean"}, "write 'cells', 'tables' or 'max'"),
    ],
)  # fmt: skip
def test_what_cannot_be_planned_is_refused_and_free(words, match):
    people = wpinq.protect(PEOPLE.with_columns(weight=pl.lit(1.5), count=1, table=1), budget=1, delta=1e-5)
    before = repr(people.budget)
    with pytest.raises((PlanError, ValueError), match=match):
        wpinq.plan_tables(people, **{"tables": ["sex"], "categories": {"sex": ["f", "m"]}, "epsilon": 1, **words})
    assert repr(people.budget) == before
