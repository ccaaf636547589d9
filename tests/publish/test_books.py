"""Releases whose ledger adds up more than epsilons: prices, what is left, evidence, and one charge a period."""

import datetime as dt
import json
from fractions import Fraction

import polars as pl
import pytest

from tests.publish.test_refusals import told  # noqa: F401  a fixture
from tests.publish.test_registry import SCHEMA, faults
from tests.publish.test_release import PAGES, release, wrote
from wpinq.core.ledger import Ledger
from wpinq.errors import BudgetError, ExactnessError, PlanError

BELL = {"name": "bell", "counts": ["page"], "keys": PAGES, "rho": "1/100", "plot": False}
LAPLACE = {"name": "views", "counts": ["page"], "keys": PAGES, "epsilon": "1/5", "plot": False}
RENYI = {"epsilon": 1, "delta": "1e-6", "accounting": "renyi"}


def facts(home, day=21):
    place = home / "out" / f"2026-11-{day}"
    return [json.loads((place / name).read_text()) for name in ("evidence.json", "registry.json")] + [
        (place / "report.md").read_text()
    ]


def test_a_release_in_rho_is_planned_published_verified_and_told(tmp_path):
    wrote(tmp_path, 21)
    site = release(tmp_path, question=[BELL, LAPLACE], budget={"rho": "1/10"})
    plan = site.plan()
    assert (plan.price.rho, plan.epsilon, plan.price.divergence) == (Fraction(1, 100), Fraction(1, 5), Fraction(3, 100))
    assert plan.lasts == 3  # 0.01 + 0.2^2 / 2 each
    noise = plan.questions[0].expected[0]
    assert noise.mechanism == "gaussian"
    assert noise.scale == pytest.approx(3 / 0.02**0.5, rel=1e-6)
    assert 1.95 * noise.scale < noise.half_width < 2.05 * noise.scale
    assert site.run().price.text == "epsilon 0.2 and rho 0.01"
    assert Ledger.existing(tmp_path / "ledger").divergence == Fraction(3, 100)
    assert site.run("2026-11-21").done == "was published before"
    assert site.verify("2026-11-21") == []
    assert Ledger.existing(tmp_path / "ledger").divergence == Fraction(3, 100)
    assert "Rho 0.07 of 0.1 is left, for 2 more periods like the last" in site.budget_line()
    evidence, entry, report = facts(tmp_path)
    assert faults(entry, SCHEMA) == []
    assert entry["deployment"]["dp_flavor"]["name"] == "Zero-concentrated DP"
    assert entry["deployment"]["privacy_loss"]["privacy_parameters"] == {"rho": 0.03}
    assert "standard deviation 21.2132" in entry["deployment"]["implementation"]["mechanisms"]
    assert "zero-concentrated losses" in entry["deployment"]["accounting"]["composition"]
    assert (evidence["cost"]["rho"], evidence["cost"]["epsilon"]) == ("1/100", "1/5")
    assert "gaussian, standard deviation 21.2132; moves it by at most" in report
    assert "rho 0.03, and holds for every delta, such as epsilon 1.1" in " ".join(report.split())
    assert "zero-concentrated losses add up to 0 of 0.1; then: " in report.replace("Zero", "zero")


def test_the_delta_of_gaussian_noise_is_planned_told_and_what_ends_the_budget(tmp_path):
    """Evidence, report and registry said delta 0, and the plan that epsilon lasts for 60 periods."""
    wrote(tmp_path, 21)
    noise = "epsilon='1/2', delta='1e-6', mechanism='gaussian'"
    (tmp_path / "flow.py").write_text(f"def dataflow(views):\n    return {{'p': views.map('page').measure({noise})}}\n")
    flow = {"name": "flow", "dataflow": "flow.py", "keys": PAGES, "plot": False}
    site = release(tmp_path, question=[flow], budget={"epsilon": 30, "delta": "1e-5"})
    plan = site.plan()
    assert plan.price.text == "epsilon 0.5, delta 0.000001"
    assert "Epsilon 30 is left, for 10 more periods; then delta is spent." in plan.left_line
    site.run()
    assert Ledger.existing(tmp_path / "ledger").spent() == (Fraction(1, 2), Fraction(1, 10**6))
    assert "is left, for 9 more periods like the last; then delta is spent." in site.budget_line()
    evidence, entry, report = facts(tmp_path)
    assert faults(entry, SCHEMA) == [] and entry["deployment"]["dp_flavor"]["name"] != "Pure DP"
    assert (evidence["cost"], evidence["questions"][0]["delta"]) == (
        {"epsilon": "1/2", "delta": "1/1000000"},
        "1/1000000",
    )
    assert "but for a failure of probability 0.000001" in " ".join(report.split())


def test_both_sums_of_a_renyi_ledger_are_planned_and_hold(tmp_path):
    """As many periods are published as the plan says, and no more."""
    question = [{**BELL, "rho": "1/200"}]
    for day in range(10, 22):
        wrote(tmp_path, day, people=5)
    site = release(tmp_path, question=question, budget=RENYI, checks={"totals": False, "keys": False})
    many = site.plan().lasts
    assert many == 4  # of rho 0.0243, where epsilon at that delta is 1
    done = 0
    with pytest.raises(BudgetError, match="Renyi divergences at order 22"):
        for one in site.backfill("2026-11-10..2026-11-21"):
            done += one.done == "published"
            assert site.plan().lasts == many - done
    assert done == many
    assert "Epsilons add up to no bound, Renyi divergences at order 22 to 0.44 of" in site.plan().left_line
    evidence, entry, _ = facts(tmp_path, 10)
    assert faults(entry, SCHEMA) == []
    assert entry["deployment"]["dp_flavor"]["name"] == "Approximate DP"
    loss = entry["deployment"]["privacy_loss"]["privacy_parameters"]
    assert 0.3 < loss["epsilon"] < 0.5 and loss["delta"] == pytest.approx(0.99e-6)
    assert evidence["budget"]["promise"] == "epsilon 1, delta 0.000001 by accounting='renyi'"


def test_laplace_questions_of_a_renyi_ledger_keep_their_epsilon(tmp_path):
    """Twenty questions of 0.2 are 4 in epsilon; by divergence more periods fit than by epsilon."""
    site = release(tmp_path, question=[LAPLACE], budget=RENYI)
    wrote(tmp_path, 21)
    assert site.plan().lasts == 5
    small = release(tmp_path, question=[{**LAPLACE, "epsilon": "1/50"}], budget=RENYI)
    assert small.plan().lasts > 100
    assert small.plan().questions[0].expected[0].scale == 150
    small.run()
    _, entry, _ = facts(tmp_path)
    assert entry["deployment"]["privacy_loss"]["privacy_parameters"] == {"epsilon": 0.02}


@pytest.mark.parametrize(("budget", "says"), [
    ({"rho": "1/50", "per": "month"}, "in rho; 0.24, after 12, is epsilon"),
    ({**RENYI, "per": "month"}, "at most n times 1, at delta 0.000001 for all of them together"),
])  # fmt: skip
def test_a_budget_for_each_month_comes_anew(tmp_path, budget, says):
    cost = "1/100" if "rho" in budget else "1/90"
    now = dt.datetime(2026, 12, 5, 6, tzinfo=dt.UTC)
    site = release(tmp_path, now=now, question=[{**BELL, "rho": cost}], budget=budget)
    for day in ("2026-11-28", "2026-11-29", "2026-11-30", "2026-12-01", "2026-12-02", "2026-12-03"):
        path = wrote(tmp_path, 1, people=5)
        path.rename(path.with_name(f"{day}.csv"))
    for day in ("2026-11-28", "2026-11-29", "2026-12-01", "2026-12-02"):
        assert site.run(day).done == "published"
    for day, month in (("2026-11-30", "2026-11"), ("2026-12-03", "2026-12")):
        with pytest.raises(BudgetError, match=f"is left in {month}"):
            site.run(day)
    words = site.plan("2026-12-03").budget
    assert says in words
    assert "There is no bound over all time" in words
    assert Ledger.existing(tmp_path / "ledger").budget == 2 * Fraction(budget.get("rho", 1))


NIGHT = dt.datetime(2026, 12, 5, 6, tzinfo=dt.UTC)


def months(home):
    for day in ("2026-10-01", "2026-11-28", "2026-11-29"):
        path = wrote(home, 1, people=5)
        path.rename(path.with_name(f"{day}.csv"))


def site_of(home, epsilon, **changes):
    question = [{**LAPLACE, "epsilon": epsilon}]
    return release(home, now=NIGHT, question=question, budget={"epsilon": 1, "per": "month"}, **changes)


def test_what_a_killed_process_was_charged_for_counts_in_its_month(tmp_path, monkeypatch):
    """Its price was known to the ledger alone, so that another day could spend November's budget a second time."""
    months(tmp_path)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("wpinq.apps.publish.publisher.compose", lambda *_: exec("raise KeyboardInterrupt"))
        site_of(tmp_path, 1).run("2026-11-28")
    site_of(tmp_path, "1/100").run("2026-10-01")  # a month more, of which much is left in the ledger
    site = site_of(tmp_path, "9/10")
    with pytest.raises(BudgetError, match="0 is left in 2026-11"):
        site.run("2026-11-29")
    wrote(tmp_path, 28, people=6)
    with pytest.raises(BudgetError, match="0 is left in 2026-11"):
        site.run("2026-11-28", again=True)
    assert Ledger.existing(tmp_path / "ledger").spent()[0] == Fraction(101, 100)
    wrote(tmp_path, 28, people=5)
    assert site_of(tmp_path, 1).run("2026-11-28").done == "published"
    assert Ledger.existing(tmp_path / "ledger").spent()[0] == Fraction(101, 100)


def test_releases_over_one_ledger_share_what_a_month_has(tmp_path):
    months(tmp_path)
    for day in ("2026-10-01", "2026-11-28"):
        site_of(tmp_path, "1/2").run(day)
    other = site_of(tmp_path, "3/4", name="other", sink=[{"directory": "other/{date}"}])
    with pytest.raises(BudgetError, match=r"0\.5 is left in 2026-11"):
        other.run("2026-11-28")
    assert site_of(tmp_path, "1/2", name="third", sink=[{"directory": "third/{date}"}]).run("2026-11-29").epsilon > 0
    assert (other.funds().left, Ledger.existing(tmp_path / "ledger").spent()[0]) == (1, Fraction(3, 2))


@pytest.mark.parametrize(("changes", "says"), [
    ({"question": [BELL]}, "no epsilon bounds Gaussian noise"),
    ({"question": [{**BELL, "epsilon": 1}], "budget": {"rho": 1}}, "give one of them"),
    ({"question": [{**LAPLACE, "mechanism": "gaussian"}], "budget": {"rho": 1}}, "costs rho"),
    ({"question": [{**BELL, "mechanism": "laplace"}], "budget": {"rho": 1}}, "other noise epsilon"),
    ({"question": [{**LAPLACE, "mechanism": "best"}], "budget": {"rho": 1}}, "best"),
    ({"question": [{**BELL, "rho": 0}], "budget": {"rho": 1}}, "above zero"),
    ({"budget": {"rho": 1, "epsilon": 1}}, r"\[budget\] needs epsilon"),
    ({"budget": {"rho": 1, "accounting": "renyi"}}, r"\[budget\] needs epsilon"),
    ({"budget": {"epsilon": 1, "accounting": "renyi"}}, "takes a delta above zero"),
    ({"budget": {"epsilon": 1, "accounting": "zcdp"}}, "zcdp"),
])  # fmt: skip
def test_what_does_not_go_together_is_refused_before_a_ledger_is_made(tmp_path, changes, says):
    with pytest.raises((PlanError, ExactnessError), match=says):
        release(tmp_path, **changes)
    assert not list(tmp_path.iterdir())


def test_a_ledger_keeps_its_accounting(tmp_path):
    wrote(tmp_path, 20)
    wrote(tmp_path, 21)
    release(tmp_path, question=[BELL], budget={"rho": 1}).run("2026-11-20")
    with pytest.raises(OSError, match="fixed when the ledger is made"):
        release(tmp_path).run("2026-11-21")


def test_digests_of_older_releases_are_what_they_were(tmp_path):
    """Keys that came later count only where they are given: or a begun period would be another one."""
    before = "7aed2ba3e4aab512a9ee9d4ec86ce981b83491174662f5b608bfd557e4dddf7f"
    assert release(tmp_path)._publisher.definition == before
    assert release(tmp_path, question=[BELL], budget={"rho": 1})._publisher.definition != before


def test_the_command_shows_both(told, tmp_path):  # noqa: F811
    code, out, _ = told("plan", "--period", "2024-03-01", change=("epsilon = 5", "rho = 5"))
    assert code == 0
    assert any(line.startswith("Epsilon") and "Zero-concentrated losses add up to 0 of 5" in line for line in out)


def test_groups_above_a_threshold_with_gaussian_noise(tmp_path):
    wrote(tmp_path, 21, people=4000)
    found = {"name": "found", "counts": ["page"], "delta": "1e-6", "rho": "1/10", "plot": False}
    site = release(tmp_path, question=[found], budget={"rho": 1, "delta": "1e-5"})
    assert site.plan().lasts == 10
    site.run()
    table = pl.read_csv(tmp_path / "out" / "2026-11-21" / "found.csv")
    assert sorted(table["page"]) == PAGES
    _, entry, report = facts(tmp_path)
    assert entry["deployment"]["privacy_loss"]["privacy_parameters"] == {"rho": 0.1, "delta": 1e-6}
    assert "rho 0.1, delta 0.000001" in report


def test_degrees_with_gaussian_noise(tmp_path):
    wrote(tmp_path, 21)
    question = {"name": "pages", "degrees": "page", "rho": "1/2", "plot": False}
    site = release(tmp_path, question=[question], budget={"rho": 1})
    assert site.plan().questions[0].expected[0].mechanism == "gaussian"
    assert site.run().price.text == "rho 0.5"
    assert site.verify("2026-11-21") == []
