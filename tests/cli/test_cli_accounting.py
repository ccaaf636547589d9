"""`--accounting renyi --delta`, and `--rho`: every command that makes a ledger, and what `wpinq ledger` tells."""

import json

import pytest

import wpinq as library
from wpinq.core.ledger import Ledger

RENYI = ("--budget", 1, "--accounting", "renyi", "--delta", "1e-6")
RHO = ("--rho", "1/50")
PROMISES = pytest.mark.parametrize(("promise", "says"), [(RENYI, "renyi"), (RHO, "rho")], ids=["renyi", "rho"])


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.py"
    path.write_text("def dataflow(views):\n    return {'pages': views.map('page').measure(epsilon='1/10')}\n")
    return path


def held(path):
    ledger = Ledger.existing(path)
    return ledger.promise.accounting, ledger.spent()[0]


@PROMISES
def test_commands_make_such_ledgers(wpinq, views, small, promise, says, tmp_path):
    done = wpinq("run", small, views, *promise, "--ledger", tmp_path / "run")
    assert (done.code, held(tmp_path / "run")) == (0, (says, library.exact.exact("1/10", "")))
    assert "one more question of epsilon" in done.out
    asked = ("sql", "SELECT COUNT(*) AS n FROM v", "--from", f"v={views}", "--epsilon", "1/10")
    own = [{"--delta": "--ledger-delta", "--rho": "--ledger-rho"}.get(word, word) for word in promise]
    assert wpinq(*asked, *own, "--ledger", tmp_path / "sql").code == 0
    assert held(tmp_path / "sql") == held(tmp_path / "run")
    assert wpinq(*asked, "--ledger", tmp_path / "sql").code == 0, "the ledger knows how it adds up"
    spends = ("--rho", "1/10") if "--rho" in promise else ("--epsilon", "1/10", *promise)
    assert wpinq("degrees", views, "--of", "page", *spends, "--ledger", tmp_path / "degrees").code == 0
    assert held(tmp_path / "degrees")[0] == says


@PROMISES
def test_explain_says_whether_it_fits(wpinq, views, small, promise, says, tmp_path, listing):
    before = listing(tmp_path)
    done = wpinq("explain", small, views, *promise)
    assert (done.code, listing(tmp_path)) == (0, before)
    assert ", which the budget of " in done.out
    assert "add up to" in done.out
    large = tmp_path / "large.py"
    large.write_text("def dataflow(views):\n    return {'pages': views.map('page').measure(epsilon=2)}\n")
    assert "it would be refused" in wpinq("explain", large, views, *promise).out


def test_two_budgets_or_another_accounting_are_refused(wpinq, views, small, tmp_path, listing):
    before = listing(tmp_path)
    for options in (("--budget", 1, *RHO), ("--budget", 1, "--accounting", "zcdp"), (*RHO, "--accounting", "renyi")):
        wpinq("run", small, views, *options).refused()
    assert listing(tmp_path) == before
    assert wpinq("run", small, views, *RENYI).code == 0
    assert "is what the ledger promises" in wpinq("run", small, views, "--budget", 1).refused()


def test_the_ledger_tells_both_sums(wpinq, views, small, tmp_path):
    path = tmp_path / "views.csv.ledger"
    wpinq("run", small, views, *RENYI)
    shown = wpinq("ledger", "show", path).out
    assert "divergence" in shown
    assert "Promises epsilon 1, delta 0.000001 by accounting='renyi'. Epsilons add up to 0.1 of 1" in shown
    assert "Spent delta 0 of 0.00000001 on thresholds and selections." in shown
    report = json.loads(wpinq("ledger", "show", path, "--json").out)
    assert (report["accounting"], report["order"], report["spent"]) == ("renyi", "22/1", "1/10")
    assert "all intact" in wpinq("ledger", "verify", path).out
    assert wpinq("ledger", "raise", path, 2).code == 0
    assert wpinq("ledger", "cap", path, "ann", 1).code == 0
    assert Ledger.existing(path).promise.budget == 2


@PROMISES
def test_no_epsilon_is_told_of_gaussian_noise(wpinq, views, promise, says, tmp_path):
    bell, path = tmp_path / "bell.py", tmp_path / "ledger"
    bell.write_text(
        "def dataflow(views):\n    p = views.map('page')\n    return {'pages': p.measure(epsilon='1/20'),"
        " 'bell': p.measure(rho='0.004', mechanism='gaussian')}\n"
    )
    assert wpinq("run", bell, views, *promise, "--ledger", path).code == 0
    report = json.loads(wpinq("ledger", "show", path, "--json").out)
    assert report["spent"] is None
    assert [row["epsilon"] for row in report["entries"] if row["kind"] == "charge"] == ["1/20", None]
    kind = {"renyi": "divergence", "rho": "rho"}[says]
    assert kind in wpinq("ledger", "show", path).out.splitlines()[2].split()
    assert f"{kind}  question" in repr(library.protect(views, ledger=path).budget)


def test_sql_spends_rho(wpinq, views, tmp_path):
    """The query's cost is --rho, the ledger's budget --ledger-rho; alone, a new ledger gets what the query costs."""
    asked = ("sql", "SELECT COUNT(*) AS n FROM v", "--from", f"v={views}", "--ledger", tmp_path / "l")
    first = wpinq(*asked, "--rho", "1/200", "--ledger-rho", "1/50")
    assert first.code == 0
    assert "Cost: rho 0.005" in first.out
    assert "Zero-concentrated losses add up to 0.005 of 0.02" in first.out
    again = wpinq(*asked, "--rho", "1/200", "--json", tmp_path / "n.json")
    assert "charged before; nothing was charged now" in again.out
    assert json.loads((tmp_path / "n.json").read_text())["cost"] == {"delta": 0.0, "rho": 0.005}
    assert (
        "measure(rho=0.005)  gaussian noise of standard deviation 10"
        in wpinq(*asked, "--rho", "1/200", "--explain").out
    )
    assert "costs rho 0.05, 0.015 is left" in wpinq(*asked, "--rho", "1/20").refused()
    assert Ledger.existing(tmp_path / "l").divergence == library.exact.exact("1/200", "")
    alone = ("sql", asked[1], "--from", f"v={views}", "--ledger", tmp_path / "alone", "--rho", "1/200")
    assert wpinq(*alone).code == 0
    assert Ledger.existing(tmp_path / "alone").promise.budget == library.exact.exact("1/200", "")


def test_sql_says_what_does_not_go_together(wpinq, views, tmp_path, listing):
    before = listing(tmp_path)
    asked = ("sql", "SELECT page, COUNT(*) AS n FROM v GROUP BY page", "--from", f"v={views}")
    assert "--ledger-rho is the budget" in wpinq(*asked, "--epsilon", 1, "--rho", 1).refused()
    assert "give --epsilon" in wpinq(*asked).refused()
    assert "give --rho instead" in wpinq(
        *asked, "--epsilon", 1, "--delta", "1e-6", "--mechanism", "gaussian", "--ledger-rho", 1).refused()  # fmt: skip
    assert "goes with --accounting renyi" in wpinq(*asked, "--rho", 1, "--delta", "1e-6", "--budget", 1).refused()
    assert listing(tmp_path) == before


def test_degrees_spend_rho(wpinq, views, tmp_path):
    """--rho is what it spends, with Gaussian noise, and the budget of a new ledger; of an old one, a part."""
    asked = ("degrees", views, "--of", "page", "--ledger", tmp_path / "l")
    first = wpinq(*asked, "--rho", "1/8", "--json", tmp_path / "d.json")
    assert first.code == 0
    assert "Gaussian noise of standard deviation 2, for rho 0.125 in all." in first.out
    told = json.loads((tmp_path / "d.json").read_text())
    assert (told["cost"], told["mechanism"]) == ({"rho": 0.125, "delta": 0}, "gaussian")
    assert Ledger.existing(tmp_path / "l").divergence == library.exact.exact("1/8", "")
    assert wpinq(*asked, "--rho", "1/8").code == 0
    assert wpinq("ledger", "raise", tmp_path / "l", "1").code == 0
    assert wpinq(*asked, "--rho", "1/2").code == 0
    assert Ledger.existing(tmp_path / "l").divergence == library.exact.exact("5/8", "")
    assert "give --epsilon" in wpinq(*asked).refused()


@pytest.mark.parametrize(("promise", "rho"), [(("--budget", 3), "0"), (("--rho", 3), "0.125")])
def test_explain_tells_a_rho_where_the_ledger_adds_it_up_alone(wpinq, views, small, promise, rho, tmp_path):
    assert wpinq("run", small, views, *promise, "--ledger", tmp_path / "led").code == 0
    told = wpinq("degrees", views, "--of", "page", "--epsilon", "1/2", "--ledger", tmp_path / "led", "--explain").out
    line = next(line for line in told.splitlines() if line.startswith("degrees of page"))
    assert line.split()[-3:] == ["0.5", rho, "0"]


def test_explain_prices_gaussian_noise_of_an_epsilon_and_a_delta_as_it_is_charged(wpinq, views, tmp_path):
    """It said a rho, and that a budget of epsilon refuses it."""
    flow, led = tmp_path / "flow.py", tmp_path / "led"
    noise = "epsilon='1/2', delta='1e-6', mechanism='gaussian'"
    flow.write_text(f"def dataflow(views):\n    return {{'p': views.map('page').measure({noise})}}\n")
    told = wpinq("explain", flow, views, "--budget", 3).out
    assert "It costs epsilon 0.5 and delta 0.000001 in all, and leaves 2.5 of the budget of 3." in told
    assert wpinq("run", flow, views, "--budget", 3, "--ledger", led, "--observe", "p=a").code == 0
    assert [*map(float, Ledger.existing(led).spent())] == [0.5, 1e-6]
    flow.write_text(flow.read_text().replace("epsilon='1/2', delta='1e-6'", "rho='1/100'"))
    assert "It costs rho 0.01 in all, which a budget of epsilon alone refuses" in (
        wpinq("explain", flow, views, "--budget", 3).out
    )
