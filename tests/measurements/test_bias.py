"""Sentences speak of noise as noise only, and say beside it what bounds, clamping and weights keep out."""

import json
import re

import pytest

import wpinq
from wpinq.apps.cli import main
from wpinq.core.measurements.answer import LEVEL
from wpinq.core.plan.phrase import biases
from wpinq.html.numbers import of_noise, rounded, upwards
from wpinq.testing import protected

LOUD = 400
"""An epsilon whose noise is zero but for a chance of exp(-400)."""
ROWS = [(f"u{i % 50}", "p") for i in range(3000)]
CUT = "records beyond 5 of one user are not in it"


def people(**how):
    return wpinq.protect(ROWS, budget=10**4, columns={"user": str, "page": str}, unit=wpinq.users("user", **how))


def of(collection):
    return biases(collection._node)


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.csv").write_text("user,page\n" + "".join(f"{user},{page}\n" for user, page in ROWS))
    return "v.csv"


def test_a_count_far_from_the_truth_is_not_said_to_be_near_it(file, tmp_path, capsys):
    """It printed 250, "within 0 of the truth with probability 95%"; the truth is 3000."""
    sql = ["sql", "SELECT COUNT(*) AS n FROM v", "--from", f"v={file}", "--unit", "user", "--at-most", "5"]
    assert main([*sql, "--epsilon", "100", "--budget", "100", "--json", "o.json"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[1] == "250 ± 0"
    assert "truth" not in out
    assert "Intervals are of noise alone, with probability 0.95 each." in out
    assert f"Beside noise: {CUT}." in out
    content = json.loads((tmp_path / "o.json").read_text())
    assert content["beside noise"] == [CUT]
    assert "noise alone" in content["intervals are of"]


def test_run_and_shell_speak_of_noise(file, tmp_path, capsys):
    script = tmp_path / "s.py"
    script.write_text("def dataflow(v):\n    return {'both': v.join(v, on='user').map('user').measure(epsilon=1)}\n")
    assert main(["run", str(script), file, "--budget", "1", "--observe", "both=u1", "--json", "o.json"]) == 0
    out = capsys.readouterr().out
    assert "truth" not in out
    assert re.search(
        r"both: noise moves each by at most [\d.]+ with probability 90%\nBeside noise: a pair of the join", out
    )
    assert "no count of pairs" in json.loads((tmp_path / "o.json").read_text())["both"]["beside noise"][0]


def test_each_bound_says_what_it_keeps_out():
    assert of(people(at_most=5)) == (CUT,)
    assert of(people(at_most=5, per=("page", 2))) == (
        "records beyond 5 of one user, and beyond 2 of one page, are not in it",
    )
    assert of(people(shared=True)) == ("the records of one user share a weight of 1, so it is no count of records",)
    views = protected(user="text", page="text", price=float)
    assert of(views) == of(views.map("page").shave().filter("index > 1")) == ()
    assert of(views.limit("user", 3)) == ("what is beyond 3 of one user is not in it",)
    assert (
        "no count of pairs; a key that weighs 9 or more is not in it" in of(views.join(views, on="user", at_most=9))[0]
    )
    assert of(views.group_by("user", len)) == ("a group weighs half a record, so it is no count of groups",)
    assert of(views.group_by("user", len, whole=True)) == ()
    assert "no count of outputs" in of(views.flat_map(lambda page: page.split()))[0]
    mean = views.mean("price", (0, "2.5"), 1)
    assert mean.bias == ("price is clamped to 0..2.5",)
    assert views.max("price", (-1, 1), 1).bias == ("price is clamped to -1..1",)
    weighed = wpinq.protect([("a", 2)], budget=1, columns={"k": str, "w": int}, weight="w", max_weight=3)
    assert of(weighed) == ("w is clamped to -3..3",)


def test_plans_and_quotes_say_it_before_anything_is_charged(capsys):
    pages = people(at_most=5).map("page")
    assert f"beside noise: {CUT}." in str(pages.explain(1))
    assert f"beside noise: {CUT}." in repr(pages.quote(1))
    assert "beside noise" not in repr(protected(page="text").quote(1))


def test_a_weighted_sum_is_never_called_a_count():
    pairs = protected([("a", 1)], k="text", n=int).join(protected([("a", 2)], name="other", k="text", m=int), on="k")
    assert pairs.map("k").measure(epsilon=LOUD).release(keys=["a"]).columns == ("k", "weighted_sum")
    found = wpinq.sql("SELECT k, COUNT(*) FROM pairs GROUP BY k", {"pairs": pairs}, epsilon=LOUD, keys=["a"])
    assert found.columns == ("k", "weighted_sum")
    assert "no count of pairs" in found.bias[0]
    whole = protected([("a", 1)], k="text", n=int)
    assert wpinq.sql("SELECT COUNT(*) FROM t", {"t": whole}, epsilon=LOUD).columns == ("count",)


def test_numbers_have_the_digits_that_noise_leaves():
    assert (rounded(5573.540679853485, 23.0262), upwards(23.0262)) == (5574, "24")
    assert (rounded(-48_123, 1234.5), upwards(1234.5)) == (-48100, "1,300")
    assert (rounded(0.123456, 0.0034), upwards(0.0034)) == (0.1235, "0.0034")
    assert (rounded("text", 3), rounded(True, 3), rounded(None, 3)) == ("text", True, None)
    assert float(upwards(0.30000000000000004)) >= 0.3
    assert of_noise(24, LEVEL, "each") == "noise moves each by at most 24 with probability 95%"
    m = protected(page="text").measure(epsilon="0.1483", mechanism="laplace")
    assert "scale 6.74309>" in repr(m)
