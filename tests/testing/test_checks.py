"""`wpinq audit --self`: a right product passes, a broken one fails, and an audit that sees no plant says so.

Draws are under fresh secrets: a right product fails one of these tests with probability below 1e-5 in all.
"""

import json
import shutil
import sys
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from depth import deep, thin
from scipy import stats

from wpinq.apps.cli import main
from wpinq.core.noise import counting_tree
from wpinq.errors import EXTRAS
from wpinq.testing.checks import borders, choices, laws, losses, names, operators, run, samplers, spending, trees
from wpinq.testing.checks.plants import PLANTS, planted
from wpinq.testing.checks.report import Found, Report
from wpinq.testing.checks.result import Result

N = 100_000
GOOD = Result(True, 3, "pairs", "all of them")
CAUGHT = Found("a fault", "a check", True, "it moved")


# ---- the tests of draws


@pytest.mark.parametrize(
    ("law", "exact"),
    [(laws.discrete_laplace(s), stats.dlaplace(1 / s)) for s in (0.4, 10)]
    + [(laws.laplace(2), stats.laplace(scale=2))],
)
def test_laws_are_those_of_scipy(law, exact):
    at = np.arange(-30, 31, 1.0)
    assert np.allclose(law.below(at), exact.cdf(at), rtol=1e-9)
    assert np.allclose(law.above(at), exact.sf(at - law.whole), rtol=1e-9)


def test_the_gaussian_law_adds_up():
    law, at = laws.discrete_gaussian(25), np.arange(-40, 41, 1.0)
    chances = np.exp(-(at**2) / 50) / np.exp(-(at**2) / 50).sum()
    assert np.allclose(np.diff(law.below(at)), chances[1:], rtol=1e-6) and law.above(np.array([30.0]))[0] < 1e-8


def dlaplace(scale):
    generator = np.random.default_rng(7)
    first, second = generator.geometric(-np.expm1(-1 / scale), (2, N))
    return (first - second).astype(float)


def test_draws_of_the_law_pass_and_others_do_not():
    right, law = dlaplace(10), laws.discrete_laplace(10)
    assert not laws.wrong(right, law)
    broken = {
        "distribution functions": dlaplace(9), "Pearson": np.where(right == 3, 4, right), "sign": right + (right == 0),
        "largest": np.clip(right, -60, 60), "largest ": np.append(right[1:], 900.0),
    }  # fmt: skip
    for name, draws in broken.items():
        assert any(name.strip() in problem for problem in laws.wrong(draws, law)), name


def test_pearson_and_chance_are_bounds():
    assert laws.pearson(60, 40) == pytest.approx(stats.chi2.sf(60, 40)) and laws.pearson(5000, 40) == 0
    for hits in (1, 50, 999, 1000):
        exact = stats.beta.ppf(1e-7, hits, 1001 - hits)
        assert 0 < losses.chance(hits, 1000, 1e-7) <= exact


def test_an_epsilon_that_is_known_is_bounded_from_below():
    noise = dlaplace(1)[: N // 2 * 2]
    both = losses.Answers(noise[: N // 2] + 1, noise[N // 2 :], 1, 1)
    assert 0.85 < losses.epsilon(both) <= 1
    assert losses.epsilon(both._replace(present=both.present + 1)) > 1.4


@pytest.mark.parametrize(
    "chance", [borders.PRECISION.divide(1, 3), borders.exponential(Fraction(3)), Decimal(2) ** -70], ids=str
)
def test_a_comparison_is_tried_at_its_border(chance):
    exact = int(borders.PRECISION.multiply(chance, Decimal(2**128)))

    def compared(border):
        return lambda words: (words[0] << 64 | words[1]) < border

    assert not borders.misplaced(chance, compared(exact))
    for wrong in (exact - 1, exact + 2, 0, 2**128, exact >> 64 << 64):
        assert borders.misplaced(chance, compared(wrong)), wrong
    assert not borders.misplaced(Decimal(0), compared(1)), "what is certain has no border"


def test_the_law_of_a_choice_is_that_of_the_largest_with_exponential_noise():
    """Ding and others, 2021: permute-and-flip is report-noisy-max with exponential noise."""
    weights, rate = np.array([3.0, 2.0, 0.0]), 0.7
    law = choices.law_of(weights, rate)
    assert sum(law.values()) == pytest.approx(1)
    noise = np.random.default_rng(3).exponential(1 / rate, (400_000, 3))
    shares = np.bincount(np.argmax(weights + noise, axis=1)) / len(noise)
    assert [law[key,] for key in range(3)] == pytest.approx(shares, abs=4e-3)
    both = choices.law_of(weights, rate, 2)
    assert sum(p for (first, _), p in both.items() if first == 0) == pytest.approx(law[0,])


def test_choices_of_another_law_are_found_also_where_only_the_first_key_shows_it():
    law = choices.law_of([4, 2, *[0] * 8], 0.5, 2)
    outcomes, likely = list(law), np.array(list(law.values()))

    def drawn(p):
        return Counter(outcomes[i] for i in np.random.default_rng(5).choice(len(p), 300, p=p / p.sum()))

    assert not choices.unlikely(drawn(likely), law)
    other = choices.law_of([4, 2, *[0] * 8], 1, 2)
    assert choices.unlikely(drawn(np.array([other[outcome] for outcome in outcomes])), law)


@pytest.mark.parametrize("paid", names.PAID)
def test_the_recursion_of_a_selection_is_private_and_nothing_larger_is(paid):
    epsilon, delta = paid[0], Decimal(paid[1].numerator) / paid[1].denominator
    grows, chances = 1 / borders.exponential(epsilon), names.kept(*paid, names.WEIGHTS)
    for less, more in pairwise(chances):
        slack = min(grows * less + delta - more, grows * (1 - more) + delta - (1 - less), 1 - more)
        assert abs(slack) < Decimal("1e-20")


def test_a_tree_whose_nodes_miss_an_epoch_or_cost_too_much_is_found(monkeypatch):
    assert trees.structure() == []
    monkeypatch.setattr(trees, "parts", lambda epoch: counting_tree.parts(epoch)[:-1])
    assert any("do not make the count" in problem for problem in trees.structure())


# ---- the checks


@thin(3)
@pytest.mark.parametrize(
    ("check", "effort"),
    [(samplers.geometric, 0.1), (samplers.fine, 0.1), (samplers.gaussian, 0.1), (samplers.once, 0.1),
     (choices.choices, 0.1), (names.partitions, 0.1), (names.weighted, 0.1), (trees.trees, 0.1),
     (samplers.threshold, 0.2), (losses.losses, 0.2), (operators.defined, 0.01), (spending.spending, 1)],
    ids=lambda value: getattr(value, "__name__", ""),
)  # fmt: skip
def test_nothing_is_wrong_and_no_extra_is_needed(check, effort, monkeypatch):
    for module in {module for modules in EXTRAS.values() for module in modules}:
        monkeypatch.setitem(sys.modules, module, None)
    done = check(effort)
    assert done.passed and not done.broke and done.tried and done.alarm <= 2e-6, done


def test_no_operator_is_left_out():
    assert operators.untried() == []


def test_columns_move_no_further_than_stated(monkeypatch):
    monkeypatch.setattr(operators, "UNITS", {"a person": operators.UNITS["a person"]})
    assert operators.computed(0.01).passed


def test_a_person_has_records_of_one_name():
    from random import Random

    random = Random(0)
    for _ in range(50):
        others, unit = operators.neighbours(random, people=True)
        assert len({name for name, _ in unit}) == 1 and unit[0][0] not in {name for name, _ in others}


def test_an_auditor_of_others_is_named_where_it_is_not_installed(monkeypatch):
    (name,) = run.NEEDS
    monkeypatch.setattr(run, "CHECKS", {name: run.CHECKS[name]})
    monkeypatch.setattr(run, "PLANTS", {})
    monkeypatch.setattr(run, "lacking", lambda extra: f"no {extra}")
    done = run.audited()
    assert done.absent == {name: "no audit"} and f"---   {name}: no audit" in str(done)
    assert not done, "an audit without a single check is none"


# ---- processes and copies


def test_a_planted_fault_is_found_in_a_copy():
    done = run.found(PLANTS["no refusal"], 120)
    assert done.caught and "more than there is was charged" in done.text


def test_what_merely_breaks_is_not_found():
    broken = PLANTS["no refusal"]._replace(new="        if 1 / 0:")
    done = run.found(broken, 120)
    assert not done.caught and "ZeroDivisionError" in done.text


def test_a_plant_that_cannot_be_put_in_is_not_found():
    done = run.found(PLANTS["no refusal"]._replace(old="what is not there"), 120)
    assert not done.caught and "could not be planted" in done.text


def broken_copy(tmp_path, name):
    copy = tmp_path / "wpinq"
    shutil.copytree(run.PACKAGE, copy, ignore=shutil.ignore_patterns("docs", "__pycache__"))
    (copy / PLANTS[name].file).write_text(planted(copy, PLANTS[name]))
    return copy


def test_a_broken_product_fails_its_audit(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "PACKAGE", broken_copy(tmp_path, "no threshold"))
    monkeypatch.setattr(run, "CHECKS", {name: run.CHECKS[name] for name in ("delta of a threshold",)})
    monkeypatch.setattr(run, "PLANTS", {})
    done = run.audited(0.5)
    assert done.wrong == ["delta of a threshold"] and not done
    assert done.verdict.startswith("WRONG: delta of a threshold")


def test_another_package_than_the_one_to_check_is_not_taken_for_it(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.executable", shutil.which("true") or "true")
    done = run.checked(tmp_path / "wpinq", "charges of a ledger", 1, 60)
    assert done.broke and "ended with 0 and no answer" in done.text


@deep
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_each_fault_that_is_shipped_is_found_and_nothing_else_is_wrong():
    done = run.audited(2)
    assert done, str(done)


# ---- what is told


def made(**words):
    words = {"checks": {"a check": GOOD}, "plants": {"a plant": CAUGHT}, "absent": {}} | words
    return Report(version="1", python="3", minutes=2, seconds=1, **words)


WRONG = made(checks={"a check": replace(GOOD, passed=False, text="<b> moved")})
BROKE = made(checks={"a check": replace(GOOD, passed=False, broke=True)})
BLIND = made(plants={"a plant": CAUGHT._replace(caught=False)})


@pytest.mark.parametrize(
    ("report", "code", "text"),
    [(made(), 0, "Nothing is wrong"), (WRONG, 1, "WRONG: a check"), (BROKE, 1, "BROKE a check"),
     (BLIND, 1, "BLIND: planted faults were not found: a plant"), (made(checks={}), 1, ""), (made(plants={}), 1, "")],
)  # fmt: skip
def test_the_command_ends_with_what_it_found(report, code, text, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "audited", lambda minutes, progress: report)
    assert main(["audit", "--self", "--minutes", "1", "--json", "a.json", "--html", "a.html"]) == code
    out = capsys.readouterr().out
    assert text in out and "Not looked at" in out
    told = json.loads((tmp_path / "a.json").read_text())
    assert told["passed"] == (code == 0) and set(told["checks"]) == set(report.checks)
    assert "<b>" not in (tmp_path / "a.html").read_text()


@pytest.mark.parametrize(
    ("words", "text"),
    [(["--self", "flow.py"], "takes no DATAFLOW"), ([], "--self, to audit wpinq"),
     (["flow.py", "--json", "a.json"], "goes with --self"), (["--self", "--json", "a.txt"], "end in one of .json"),
     (["--self", "--minutes", "0"], "minutes")],
)  # fmt: skip
def test_what_is_not_asked_right_is_refused(words, text, capsys):
    assert main(["audit", *words]) == 2
    assert text in capsys.readouterr().err


def test_the_process_of_a_check_answers_in_its_last_line(capsys):
    told = json.loads(run.answer(["charges of a ledger", "1"]))
    assert told.pop("package") == str(run.PACKAGE) and Result(**told).passed
    assert run.alone("no such check", 1).broke
