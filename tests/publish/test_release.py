"""A release file is read strictly, priced without records, and published period by period, each exactly once."""

import datetime as dt
import json
import shutil
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from unittest.mock import patch

import polars as pl
import processes
import pytest
from ledger.files import killed_while_made

from wpinq.apps.publish import BusyError, ChangedError, HeldError, Release
from wpinq.apps.publish.keys import declared
from wpinq.core import Kind, Schema, kernels
from wpinq.core.runs import people_index
from wpinq.errors import BinError, BudgetError, ExactnessError, PlanError, SourceError

NOW = dt.datetime(2026, 11, 22, 6, tzinfo=dt.UTC)
PAGES = [f"/p{number}" for number in range(6)]


def wrote(home: Path, day: int, people: int = 90, pages: int = 6) -> Path:
    """A day's views: each person views three pages."""
    (home / "views").mkdir(exist_ok=True)
    path = home / "views" / f"2026-11-{day:02}.csv"
    rows = "".join(f"u{one},/p{(one + step) % pages}\n" for one in range(people) for step in range(3))
    path.write_text("user,page\n" + rows)
    return path


def given(**changes) -> dict:
    """The smallest release, with questions quick to publish."""
    file = {
        "data": {"source": "views/{date}.csv", "unit": {"column": "user", "at_most": 3}, "ledger": "ledger"},
        "budget": {"epsilon": 30},
        "question": [{"name": "views", "sql": "SELECT page, COUNT(*) AS views FROM data GROUP BY page", "keys": PAGES,
                      "epsilon": 3, "plot": False}],
        "sink": [{"directory": "out/{date}"}],
    }  # fmt: skip
    return {**file, **changes}


def release(home: Path, *, now: dt.datetime = NOW, **changes) -> Release:
    return Release(given(**changes), "site", home, clock=lambda: now)


README = Path(__file__).parents[2] / "wpinq" / "apps" / "publish" / "README.md"


def test_the_smallest_file_works_as_it_stands(tmp_path):
    """That of the room's README: views.csv has columns page and views, and the evidence lies beside it."""
    wrote(tmp_path, 21)
    (tmp_path / "pages.csv").write_text("\n".join(PAGES) + "\n")
    (tmp_path / "RELEASE.toml").write_text(README.read_text().partition("```toml\n")[2].partition("```")[0])
    command = [sys.executable, "-m", "wpinq", "publish", "run", "RELEASE.toml", "--period", "2026-11-21"]
    done = processes.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "2026-11-21: published, epsilon 1.\n"), done.stderr
    place = tmp_path / "out" / "2026-11-21"
    table = pl.read_csv(place / "views.csv")
    assert table.columns == ["page", "views", "views_low", "views_high"]
    assert table["page"].to_list() == PAGES
    assert {path.name for path in place.iterdir()} == {
        "views.csv", "views.png", "report.md", "report.html", "evidence.json", "registry.json"
    }  # fmt: skip


def test_a_period_is_published_once_and_verified(tmp_path):
    wrote(tmp_path, 21)
    site = release(tmp_path)
    assert site.run().done == "published"
    before = {path: path.read_bytes() for path in (tmp_path / "out" / "2026-11-21").iterdir()}
    assert site.run("2026-11-21").done == "was published before"
    assert before == {path: path.read_bytes() for path in before}
    assert site.verify("2026-11-21") == []
    assert site.plan().left == 27
    place = tmp_path / "out" / "2026-11-21" / "views.csv"
    place.write_text(place.read_text().replace("/p1", "/p9"))
    (found,) = site.verify("2026-11-21")
    assert "views.csv" in found


@pytest.mark.skipif(kernels.LIB is None, reason="without compiled kernels nothing is indexed")
def test_killed_while_its_ledger_was_made_it_is_planned_and_published(tmp_path):
    wrote(tmp_path, 21)
    killed_while_made(tmp_path / "ledger")
    assert "There is no ledger yet" in release(tmp_path).budget_line()
    assert [one.name for one in release(tmp_path).plan().questions] == ["views"]
    assert release(tmp_path).run().done == "published"


def test_two_questions_about_people_of_a_period_share_a_pass_and_verify_takes_none_of_it(tmp_path):
    """They are of the same records by person; a check bounds people anew for each, from the source."""
    wrote(tmp_path, 21)
    (first,) = given()["question"]
    query = "SELECT page, COUNT(*) AS views FROM data WHERE page <> '/p1' GROUP BY page"
    site = release(tmp_path, question=[first, {**first, "name": "more", "sql": query}])
    with patch.object(people_index, "parts", side_effect=people_index.parts) as built:
        assert site.run().done == "published"
        assert built.call_count == 1
        assert site.verify("2026-11-21") == []
        assert built.call_count == 1
    assert not [path for path in tmp_path.iterdir() if ".people-" in path.name]


def test_without_what_draws_a_period_has_no_pictures(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    wrote(tmp_path, 21)
    question = {name: value for name, value in given()["question"][0].items() if name != "plot"}
    with pytest.warns(RuntimeWarning, match="2026-11-21: is without pictures: there is no matplotlib") as told:
        release(tmp_path, question=[question]).run("2026-11-21")
    assert len(told) == 1
    names = {one.name for one in (tmp_path / "out" / "2026-11-21").iterdir()}
    assert "views.csv" in names and not [name for name in names if name.endswith(".png")]


def test_noise_differs_between_periods_of_equal_records(tmp_path):
    wrote(tmp_path, 20)
    wrote(tmp_path, 21)
    site = release(tmp_path)
    assert [one.done for one in site.backfill("2026-11-20..2026-11-21")] == ["published", "published"]
    first, second = (pl.read_csv(tmp_path / "out" / f"2026-11-{day}" / "views.csv") for day in (20, 21))
    assert not first.equals(second)  # equal with probability below 10^-4, and fixed by nothing but their names


def test_a_plan_reads_no_record_and_prices_exactly(tmp_path):
    path = wrote(tmp_path, 21)
    path.write_text(path.read_text().splitlines()[0] + "\n")
    plan = release(tmp_path).plan()
    assert (plan.epsilon, plan.lasts, plan.left) == (3, 10, 30)
    (noise,) = plan.questions[0].expected
    assert noise.scale == 1.0  # three records of a person, epsilon 3
    assert noise.half_width == 3.0
    assert not (tmp_path / "ledger").exists()


def test_all_of_a_period_is_charged_or_nothing(tmp_path):
    wrote(tmp_path, 21)
    questions = [{**given()["question"][0], "name": name, "epsilon": cost} for name, cost in (("a", 1), ("b", 2))]
    site = release(tmp_path, question=questions, budget={"epsilon": "2.9"})
    with pytest.raises(BudgetError, match="nothing was charged"):
        site.run()
    assert site.plan().left == Fraction("2.9")
    assert [(one.stage, "costs epsilon" in one.why) for one in site.status()] == [("refused", True)]
    assert not (tmp_path / "out").exists()


def test_a_period_that_was_mistyped_and_refused_begins_nothing(tmp_path):
    wrote(tmp_path, 21).with_name("2026-10-01.csv").write_text("user,page\nann,/p1\n")
    question, budget = given()["question"][0], {"epsilon": 2}
    with pytest.raises(BudgetError):
        release(tmp_path, question=[{**question, "epsilon": 3}], budget=budget).run("2026-10-01")
    site = release(tmp_path, question=[{**question, "epsilon": 1}], budget=budget)
    site.run()
    assert [(one.period, one.stage) for one in site.status()] == [
        ("2026-10-01", "refused"),
        ("2026-11-21", "published"),
    ]


def test_records_that_changed_are_told_and_never_charged(tmp_path):
    path = wrote(tmp_path, 21)
    site = release(tmp_path)
    site.run()
    path.write_text(path.read_text() + "new,/p1\n")
    with pytest.warns(RuntimeWarning, match="what is published stays.* A correction is a release file of its own"):
        assert site.run().done == "was published before"
    with pytest.raises(ChangedError):
        site.verify("2026-11-21")
    assert site.plan().left == 27


def test_records_that_changed_after_the_charge_are_charged_only_when_it_is_said(tmp_path):
    path = wrote(tmp_path, 21)
    site = release(tmp_path, sink=[{"sqlite": "no/such/place.sqlite"}])
    with pytest.raises(SourceError):
        site.run()
    assert not (tmp_path / "ledger").exists()  # the sink is tried before anything is charged
    site = release(tmp_path)
    site.run()
    register = site._publisher.register
    register.enter(replace(register.records()["2026-11-21"], stage="begun"))  # as if killed after the charge
    shutil.rmtree(tmp_path / "out")
    path.write_text(path.read_text() + "new,/p1\n")
    with pytest.raises(ChangedError, match="--again"):
        site.run()
    assert site.plan().left == 27


def test_what_breaks_with_the_past_is_held(tmp_path):
    for day in (17, 18, 19, 20):
        wrote(tmp_path, day, people=300)
    wrote(tmp_path, 21, people=300, pages=5)  # one page is called otherwise from now on
    site = release(tmp_path)
    assert all(one.done == "published" for one in site.backfill("2026-11-17..2026-11-20"))
    with pytest.raises(HeldError, match="/p5"):
        site.run()
    assert not (tmp_path / "out" / "2026-11-21").exists()
    assert site.status()[-1].stage == "held"
    left = site.plan().left
    assert site.run(accept=True).done == "published"
    assert site.plan().left == left


def test_a_day_of_which_half_arrived_is_held(tmp_path):
    for day in (18, 19, 20):
        wrote(tmp_path, day, people=300)
    wrote(tmp_path, 21, people=100)
    site = release(tmp_path)
    list(site.backfill("2026-11-18..2026-11-20"))
    with pytest.raises(HeldError, match="sums to about"):
        site.run()


def test_an_expected_key_that_is_not_declared_is_refused_before_the_charge(tmp_path):
    wrote(tmp_path, 21)
    question = {**given()["question"][0], "expect": ["/p1", "/p77"]}
    with pytest.raises(PlanError, match="/p77"):
        release(tmp_path, question=[question]).run()
    assert release(tmp_path).plan().left == 30


def test_a_place_that_holds_something_else_is_refused_before_the_charge(tmp_path):
    wrote(tmp_path, 21)
    (tmp_path / "out" / "2026-11-21").mkdir(parents=True)
    with pytest.raises(SourceError, match="move it away"):
        release(tmp_path).run()
    (tmp_path / "text.sqlite").write_text("no database, but longer than the head of one " * 9)
    with pytest.raises(SourceError, match="not a database"):
        release(tmp_path, sink=[{"sqlite": "text.sqlite"}]).run()
    assert not (tmp_path / "ledger").exists()


def test_every_kind_of_question_and_sink(tmp_path):
    wrote(tmp_path, 21)
    (tmp_path / "flow.py").write_text(
        "def dataflow(views):\n    return {'pages': views.map('page').measure(epsilon=1)}\n"
    )
    questions = [
        {"name": "pages", "counts": ["page"], "keys": PAGES, "epsilon": 1, "plot": False},
        {"name": "found", "counts": ["page"], "delta": "1e-6", "epsilon": 9, "plot": False},
        {"name": "how_often", "degrees": "page", "epsilon": 1, "plot": False},
        {"name": "flow", "dataflow": "flow.py", "keys": PAGES, "plot": False},
    ]
    sinks = [{"directory": "out/{date}", "formats": ["csv", "parquet", "json"]}, {"sqlite": "out.sqlite"}]
    site = release(tmp_path, question=questions, sink=sinks, budget={"epsilon": 30, "delta": "1e-5"})
    assert site.run().epsilon == 12
    with closing(sqlite3.connect(tmp_path / "out.sqlite")) as base, base:
        rows = base.execute("SELECT page, count FROM site_pages WHERE period = '2026-11-21'").fetchall()
        names = {name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    stored = pl.read_csv(tmp_path / "out" / "2026-11-21" / "pages.csv")
    assert rows == stored.select("page", "count").rows()
    assert {"site_pages", "site_found", "site_how_often", "site_flow_pages"} <= names
    assert site.verify("2026-11-21") == []
    with closing(sqlite3.connect(tmp_path / "out.sqlite")) as base, base:
        base.execute("UPDATE site_pages SET count = count + 1 WHERE page = '/p2'")
    (found,) = site.verify("2026-11-21")
    assert "site_pages" in found
    facts = json.loads((tmp_path / "out" / "2026-11-21" / "evidence.json").read_text())
    assert facts["cost"] == {"epsilon": "12", "delta": "1/1000000"}


def test_a_budget_for_each_month(tmp_path):
    days = ("2026-10-30", "2026-10-31", "2026-11-01", "2026-11-02")
    for day in days:
        wrote(tmp_path, 28).rename(tmp_path / "views" / f"{day}.csv")
    site = release(tmp_path, budget={"epsilon": 6, "per": "month"})
    for day in days:
        site.run(day)
    wrote(tmp_path, 3)
    with pytest.raises(BudgetError, match="0 is left in 2026-11"):
        site.run("2026-11-03")
    assert "at most n times 6" in site.plan("2026-11-03").budget


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("data", "sauce"), 1, "'sauce' is not known in data; 'source' is"),
        (("budget", "epsilon"), -1, "not above zero"),
        (("question", 0, "epsilon"), None, "epsilon is missing"),
        (("question", 0, "name"), "../x", "letters, digits"),
        (("question", 0, "degrees"), "page", "one of sql, counts, degrees, dataflow"),
        (("question", 0, "delta"), "1e-6", "not both"),
        (("sink",), [], "sink"),
        (("data", "source"), "views.csv", "every period would read the same"),
        (("period",), {"every": "fortnight"}, "fortnight"),
        (("budget", "per"), "hour", "each day must lie in one hour"),
    ],
)
def test_a_wrong_file_is_one_clear_line(tmp_path, path, value, said):
    file = given()
    inner = file
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    with pytest.raises((PlanError, ExactnessError), match=said) as error:
        Release(file, "site", tmp_path)
    assert "\n" not in str(error.value)


def test_periods_that_cannot_be(tmp_path):
    wrote(tmp_path, 21)
    site = release(tmp_path)
    with pytest.raises(PlanError, match="is not over"):
        site.run("2026-11-22")
    with pytest.raises(PlanError, match="is no day"):
        site.run("2026-11")
    with pytest.raises(SourceError, match="no such file"):
        site.run("2026-11-20")
    site.run()
    with pytest.raises(PlanError, match="overlaps 2026-11-21"):
        release(tmp_path, period={"every": "month"}, now=NOW + dt.timedelta(days=20)).run("2026-11")
    with pytest.raises(PlanError, match="set the clock"):
        wrote(tmp_path, 19)
        release(tmp_path, now=NOW - dt.timedelta(hours=3)).run("2026-11-19")
    assert site.plan().left == 27


def test_another_budget_than_the_ledgers_is_refused_by_the_plan_too(tmp_path):
    wrote(tmp_path, 21)
    release(tmp_path).run()
    for epsilon in ("0.5", 40):
        with pytest.raises(PlanError, match=r"the ledger's is epsilon 30, delta 0, and not epsilon (0.5|40)"):
            release(tmp_path, budget={"epsilon": epsilon}).plan()


def test_a_status_promises_no_other_budget_than_the_ledgers(tmp_path):
    """It said "epsilon 40 in all, and never more" beside a ledger of 30, as after a backup of the ledger came back."""
    wrote(tmp_path, 21)
    release(tmp_path).run()
    assert "never more than this" in release(tmp_path).budget_line()
    line = release(tmp_path, budget={"epsilon": 40}).budget_line()
    assert "No period is published before these agree: [budget]: the ledger's is epsilon 30" in line
    assert "never more than this" not in line


@pytest.mark.parametrize("header", ["value", "site"])
def test_a_first_line_of_keys_may_name_the_columns_as_the_schema_or_the_question_does(tmp_path, header):
    (tmp_path / "keys.csv").write_text(f"{header}\na\n{header}\n")
    kept = declared("keys.csv", Schema.of(value=Kind.TEXT), tmp_path, "[question.a]", ("site",))
    assert kept.collect().rows() == [("a",), (header,)]


def test_keys_that_do_not_fit(tmp_path):
    wrote(tmp_path, 21)
    (tmp_path / "keys.csv").write_text("a,b\n")
    with pytest.raises(BinError, match="has 2 columns"):
        release(tmp_path, question=[{**given()["question"][0], "keys": "keys.csv"}]).run()
    with pytest.raises(SourceError, match="no such file"):
        release(tmp_path, question=[{**given()["question"][0], "keys": "none.csv"}]).run()


def test_two_processes_never_publish_together(tmp_path):
    wrote(tmp_path, 21)
    site = release(tmp_path)
    with site._publisher.register.locked(), pytest.raises(BusyError):
        release(tmp_path).run()
    assert site.run().done == "published"
