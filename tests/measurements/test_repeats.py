"""A question that is charged again says so first: of another version of the data, or by another Python."""

import warnings
from fractions import Fraction

import pytest

import wpinq
from wpinq.apps.cli import main
from wpinq.core.functions.code import capture
from wpinq.core.pricing import recharge
from wpinq.errors import BudgetError, PlanError

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture
def views(tmp_path):
    """A file whose records are given, protected."""

    def protected(rows, version="july", **more):
        (tmp_path / "v.csv").write_text("user,page\n" + rows)
        return wpinq.protect(tmp_path / "v.csv", budget=9, version=version, **more)

    return protected


def ask(views, **more):
    return views.map("page").measure(epsilon=1, **more)


def test_another_version_is_charged_and_says_so(views):
    ask(views("ann,a\n", "june"), name="pages")
    said = "pages: this question about 'v.csv' was answered for another version, 'june', of the data; who is in both"
    with pytest.warns(RuntimeWarning, match=said):
        ask(views("bob,a\n"), name="pages")
    again = views("bob,a\n")
    ask(again, name="pages")
    ask(views("ann,a\n", "june"), name="pages")
    assert again.left == 7, "both versions are free now, and nothing is said of them"


def test_it_is_said_where_another_version_holds_the_same(views):
    """Else what is said would tell whether they hold the same."""
    ask(views("ann,a\n", "june"))
    with pytest.warns(RuntimeWarning, match="another version, 'june', of the data; who is in both loses both"):
        ask(views("ann,a\n"))


def test_other_questions_are_no_repetition(views):
    one = views("ann,a\n", "june")
    ask(one)
    one.filter(lambda user: [user] == ["ann"]).measure(epsilon=1)
    other = views("ann,b\n")
    other.map("user").measure(epsilon=1)
    other.map("page").measure(epsilon=2)
    ask(other, name="another")
    for name in ("bob", "cat"):  # one code, other values that it holds
        other.filter(lambda user, name=name: [user] == [name]).measure(epsilon="0.1")
    ask(wpinq.protect([("a", "b")], columns={"user": str, "page": str}, budget=1))


@pytest.mark.parametrize("mode", ["refuse", "ask"])
def test_it_is_refused_where_that_is_said_or_nobody_can_be_asked(views, mode):
    ask(views("ann,a\n", "june"))
    other = views("bob,a\n", repeat=mode)
    with pytest.raises(BudgetError, match="repeat= refuses that, and nothing was charged"):
        ask(other)
    assert other.left == 8
    other.map("user").measure(epsilon=1)
    assert other.left == 7


@pytest.mark.parametrize(("said", "left"), [("y", 7), ("", 8), ("no", 8)])
def test_who_can_be_asked_is_asked(views, monkeypatch, capsys, said, left):
    ask(views("ann,a\n", "june"))
    other = views("bob,a\n", repeat="ask")
    monkeypatch.setattr(recharge, "notebook", lambda: True)
    monkeypatch.setattr("builtins.input", lambda: said)
    if left == 8:
        with pytest.raises(BudgetError):
            ask(other)
    else:
        ask(other)
    assert other.left == left
    assert "costs epsilon 1 again. Charge it? [y/N]" in capsys.readouterr().err


def test_another_python_is_charged_and_says_so(views, monkeypatch):
    """Bytecode differs, and so may results: 3.12 adds up floats in another way. So it is another question."""

    def plain(one):
        return one.filter(lambda user: [user] == ["ann"]).measure(epsilon=1)

    one = views("ann,a\n")
    plain(one), ask(one)
    monkeypatch.setattr(capture.sys, "version_info", (3, 11, 99))
    with pytest.warns(RuntimeWarning, match="by another version of Python, wpinq or of a library"):
        plain(one)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain(one), ask(one)
    assert one.left == Fraction(6), "what is traced is free in all"


def test_epochs_of_a_live_source_are_expected_to_be_asked_again():
    live = wpinq.live(columns=("user", "page"), budget=3)
    for _ in range(2):
        found = live.map(lambda page: page).measure(epsilon=1)
        live.send([("ann", "a")])
        live.advance()
        found.observe("a")
    live.close()


def test_another_word_is_refused(views):
    with pytest.raises(PlanError, match="'charge', 'ask', 'refuse'"):
        views("ann,a\n", repeat="never")


def test_the_command_line_says_it_in_one_line(tmp_path, capfd):
    warnings.simplefilter("always")
    command = ["run", "page_views", str(tmp_path / "v.csv"), "--budget", "9"]
    for rows, version in (("ann,a\n", "june"), ("bob,a\n", "july")):
        (tmp_path / "v.csv").write_text("user,page\n" + rows)
        assert main([*command, "--data-version", version]) == 0
        said = [line for line in capfd.readouterr().err.splitlines() if "this question" in line]
        assert len(said) == (version == "july")
    assert said[0].startswith("wpinq: page_views: this question about 'v.csv' was answered for another version, 'june'")
    assert main([*command, "--data-version", "august", "--repeat", "refuse"]) == 2
    assert main([*command, "--repeat", "never"]) == 2
    assert "--repeat" in capfd.readouterr().err
