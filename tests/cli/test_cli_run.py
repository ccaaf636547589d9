"""`wpinq run` and `wpinq explain`: answers, charges, and what is found out before anything is charged."""

from __future__ import annotations

import json
import re
from fractions import Fraction

import pytest

from wpinq.core.ledger import Ledger


def test_observed_bins(wpinq, views, loud, tmp_path, remaining):
    out, ledger = tmp_path / "out.json", tmp_path / "ledger"
    asked = ["--observe", "pages=home,a b", "--observe", 'pages=["nope"]', "--observe", "cdf=1..4"]
    asked += ["--observe", "both=ann:home,zoe:home"]
    done = wpinq("run", loud, views, "--budget", "150", "--ledger", ledger, *asked, "--json", out)
    assert (done.code, done.err) == (0, "")
    found = json.loads(out.read_text())
    assert found["pages"]["bins"] == ["home", "a b", "nope"]
    assert found["pages"]["values"] == [3, 1, 0]
    assert found["cdf"]["bins"] == [1, 2, 3, 4]
    assert found["cdf"]["values"] == [3, 2, 1, 0]
    assert found["both"]["bins"] == [["ann", "home"], ["zoe", "home"]]
    assert found["both"]["values"] == [1, 0]
    assert {one["scale"] for one in found.values()} == {0.02}
    assert {one["epsilon"] for one in found.values()} == {50}
    assert remaining(ledger) == 0
    assert re.search(r"^  ann:home  1$", done.out, re.MULTILINE)


def test_again_costs_nothing_and_a_new_question_is_answered(wpinq, views, tmp_path, remaining):
    ledger, outs = tmp_path / "ledger", [tmp_path / f"{i}.json" for i in range(3)]
    for out, bins in zip(outs, ["1..50", "1..50", "50"], strict=True):
        asked = ["--observe", f"degree_cdf={bins}", "--json", out]
        assert wpinq("run", "degree_cdf", views, "--budget", "0.1", "--ledger", ledger, *asked).code == 0
        assert remaining(ledger) == 0
    first, second, third = (json.loads(out.read_text())["degree_cdf"]["values"] for out in outs)
    assert len(set(first)) > 3  # noise of scale 10
    assert first == second
    assert third == first[-1:]


def test_a_function_that_is_not_traced_is_free_the_second_time(wpinq, views, tmp_path, remaining):
    script, ledger = tmp_path / "script.py", tmp_path / "ledger"
    script.write_text(
        "LONG = 3\n"
        "def kind(page):\n"
        "    if len(page) > LONG:\n"
        "        return 'long'\n"
        "    return 'short'\n"
        "def dataflow(views):\n"
        "    return {'kinds': views.map(kind).measure(epsilon=1)}\n"
    )
    for _ in range(2):
        done = wpinq("run", script, views, "--budget", "3", "--ledger", ledger, "--observe", "kinds=long,short")
        assert done.code == 0
        assert remaining(ledger) == 2
    script.write_text(script.read_text().replace("LONG = 3", "LONG = 4"))
    assert wpinq("run", script, views, "--budget", "3", "--ledger", ledger).code == 0
    assert remaining(ledger) == 1


def test_a_lambda_that_raises_on_some_record_drops_it(wpinq, views, tmp_path):
    script, out = tmp_path / "script.py", tmp_path / "out.json"
    script.write_text(
        "def dataflow(views):\n"
        "    return {'x': views.map(lambda page: {'home': 1, 'news': 2}[page]).measure(epsilon=50)}\n"
    )
    done = wpinq("run", script, views, "--budget", "50", "--observe", "x=1,2,3", "--json", out)
    assert done.code == 0 and done.err.startswith("Bins of value may be of any type; some are read as whole numbers.")
    assert json.loads(out.read_text())["x"]["values"] == [3, 2, 0]


def test_what_a_script_prints_is_printed_once(wpinq, views, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("def dataflow(views):\n    print('hello')\n    return {'x': views.measure(epsilon=1)}\n")
    assert wpinq("run", script, views, "--budget", "1").out.count("hello") == 1


def test_the_shipped_dataflows_are_found_by_name_from_anywhere(wpinq, views, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("page_views", "dataflows/degree_cdf.py", "degree_sequence.py", "dataflows/degrees"):
        assert wpinq("explain", name).code == 0
    (tmp_path / "page_views.py").write_text("def dataflow(views): return {'mine': views.measure(epsilon=1)}\n")
    assert "mine:" in wpinq("explain", "page_views.py").out  # a path goes first


SCRIPTS = {
    "syntax": ("def dataflow(views)\n", "line 1"),
    "import": ("import no_such_library\n", "there is no module 'no_such_library' here"),
    "no function": ("x = 1\n", "defines no function dataflow(views)"),
    "nothing returned": ("def dataflow(views):\n    pass\n", "dict of measurements"),
    "no measurement": ("def dataflow(views):\n    return {'x': views}\n", "Collection under 'x'"),
    "its own error": ("def dataflow(views):\n    x = 1\n    raise OSError('secret words')\n", "line 3: OSError"),
    "wrong arguments": (
        "def dataflow(views):\n    return {'x': views.map(lambda a, b, c: a).measure(epsilon=1)}\n",
        "3 arguments, and there are 2 columns",
    ),
    "epsilon": ("def dataflow(views):\n    return {'x': views.measure(epsilon=float('nan'))}\n", "not a finite number"),
    "too much": ("def dataflow(views):\n    return {'x': views.measure(epsilon=2, name='dear')}\n", "costs epsilon 2"),
}


@pytest.mark.parametrize("case", SCRIPTS)
def test_bad_scripts_are_one_line_and_make_no_ledger(wpinq, views, tmp_path, case, listing):
    script = tmp_path / "script.py"
    text, says = SCRIPTS[case]
    script.write_text(text)
    before = listing(tmp_path)
    line = wpinq("run", script, views, "--budget", "1").refused()
    assert says in line
    assert "secret words" not in line
    assert listing(tmp_path) == before


ASKED = {
    "wrong type": ("degree_cdf=home", "of the type integer"),
    "fraction": ("degree_cdf=1.5", "of the type integer"),
    "unknown name": ("cdf=1", "no measurement 'cdf'; there are 'degree_cdf'"),
    "no bins": ("degree_cdf", "write NAME=BINS"),
    "backwards": ("degree_cdf=9..1", "ends before"),
    "JSON text": ('degree_cdf=["1"]', "of the type integer"),
    "too large": ("degree_cdf=9223372036854775808", "of the type integer"),
}


@pytest.mark.parametrize("case", ASKED)
def test_bad_bins_are_found_before_anything_is_charged(wpinq, views, tmp_path, case, listing):
    before = listing(tmp_path)
    asked, says = ASKED[case]
    assert says in wpinq("run", "degree_cdf", views, "--budget", "1", "--observe", asked).refused()
    assert listing(tmp_path) == before


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--budget", "0"], "not above zero"),
        (["--budget", "inf"], "not a finite number"),
        ([], "give a budget"),
        (["--budget", "1", "--json", "no/such/out.json"], "cannot be written"),
        (["--budget", "1", "--columns", "user,url"], "'url'"),
    ],
)
def test_bad_options(wpinq, views, tmp_path, options, says, listing):
    before = listing(tmp_path)
    assert says in wpinq("run", "degree_cdf", views, *options).refused()
    assert listing(tmp_path) == before


def test_another_budget_than_the_ledger_holds_is_refused(wpinq, views, tmp_path, remaining):
    ledger = tmp_path / "ledger"
    assert wpinq("run", "degree_cdf", views, "--budget", "0.3", "--ledger", ledger).code == 0
    assert "ledger raise" in wpinq("run", "degree_cdf", views, "--budget", "1", "--ledger", ledger).refused()
    assert remaining(ledger) * 10 == 2
    assert wpinq("run", "degree_cdf", views, "--ledger", ledger).code == 0  # the ledger holds its budget
    assert wpinq("ledger", "raise", ledger, "1").code == 0
    assert wpinq("run", "degree_cdf", views, "--budget", "1", "--ledger", ledger).code == 0


def test_a_new_version_is_charged_to_the_same_budget(wpinq, views, tmp_path, remaining):
    ledger = tmp_path / "ledger"
    assert wpinq("run", "degree_cdf", views, "--budget", "0.1", "--ledger", ledger).code == 0
    views.write_text("user,page\nann,home\n")
    again = ["run", "degree_cdf", views, "--budget", "0.1", "--ledger", ledger]
    assert "If this is the next version, name it: --data-version 20" in wpinq(*again).refused()
    assert "0 is left" in wpinq(*again, "--data-version", "next").refused()


def test_explain_spends_nothing_and_leaves_nothing(wpinq, tmp_path, monkeypatch, listing):
    monkeypatch.chdir(tmp_path)
    done = wpinq("explain", "degrees", "--columns", "when:date,page:int,user", "--budget", "0.5")
    assert (done.code, done.err) == (0, "")
    assert "noise of scale 10" in done.out
    assert "(page: integer)" in done.out
    assert "costs epsilon 0.2 in all, and leaves 0.3 of the budget of 0.5." in done.out
    over = wpinq("explain", "degrees", "--budget", "0.1")
    assert "0.1 more than the budget of 0.1: it would be refused" in over.out
    assert listing(tmp_path) == {}
    assert "(user, url)" in wpinq("explain", "degrees", "--columns", "user,url").refused()
    assert "no such dataflow script" in wpinq("explain", "none").refused()
    assert listing(tmp_path) == {}


SCRIPT = """
def dataflow(views):
    pages = views.map('page')
    first = pages.measure(epsilon='0.5', name='first')
    {between}
    return {{'first': first, 'second': pages.measure(epsilon='0.5', name='second')}}
"""


@pytest.mark.parametrize(("between", "left"), [("", 0), ("first.observe('home')", Fraction(1, 2))])
def test_a_script_is_charged_as_a_whole_unless_it_observes_before_it_goes_on(wpinq, views, tmp_path, between, left):
    """A ledger with room for one of two measurements: the budget alone, as it is given, would hold both."""
    book = tmp_path / "ledger"
    script = tmp_path / "two.py"
    script.write_text(SCRIPT.format(between=between))
    other = tmp_path / "other.py"
    other.write_text("def dataflow(views):\n    return {'a': views.measure(epsilon='0.25')}\n")
    assert wpinq("run", other, views, "--budget", "1", "--ledger", book).code == 0
    refused = wpinq("run", script, views, "--budget", "1", "--ledger", book).refused()
    assert ("second: costs epsilon 0.5" if between else "second: costs epsilon 1 with what is charged") in refused
    assert Ledger.existing(book).spent()[0] == Fraction(1, 4) + left


def test_a_script_that_fails_at_its_end_is_not_charged(wpinq, views, tmp_path):
    """Over no records it works: only the real input has such a name."""
    script = tmp_path / "late.py"
    script.write_text(
        "import pathlib\n"
        "def dataflow(views):\n"
        "    made = {'a': views.measure(epsilon='0.25')}\n"
        f"    ran = pathlib.Path({str(tmp_path / 'ran')!r})\n"
        "    if ran.exists():\n"
        "        raise ValueError\n"
        "    ran.touch()\n"
        "    return made\n"
    )
    book = tmp_path / "ledger"
    wpinq("run", script, views, "--budget", "1", "--ledger", book).refused()
    assert Ledger.existing(book).spent()[0] == 0


def test_gaussian_noise_is_told_in_rho_and_refused_by_a_budget_of_epsilon(wpinq, views, tmp_path):
    script, ledger, out = tmp_path / "flow.py", tmp_path / "ledger", tmp_path / "out.json"
    script.write_text(
        "def dataflow(views):\n    return {'pages': views.map('page').measure(rho='0.01', mechanism='gaussian')}\n"
    )
    assert (
        "It costs rho 0.01 in all, which a budget of epsilon alone refuses"
        in wpinq("explain", script, views, "--budget", "1").out
    )
    assert "which the budget of rho 1" in wpinq("explain", script, views, "--rho", "1").out
    asked = [script, views, "--observe", "pages=home", "--json", out]
    assert "a sum of epsilons" in wpinq("run", *asked, "--budget", "1", "--ledger", ledger).refused()
    done = wpinq("run", *asked, "--rho", "1", "--ledger", tmp_path / "other")
    said = json.loads(out.read_text())["pages"]
    assert (done.code, said["rho"], "epsilon" in said) == (0, 0.01, False)
    assert "rho 0.01" in done.out
