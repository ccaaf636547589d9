"""`wpinq degrees`: what it writes, what it charges, and what it refuses before it charges anything."""

from __future__ import annotations

import csv
import json
from fractions import Fraction

import pytest

from wpinq import protection


def test_all_outputs(wpinq, views, tmp_path):
    out, plot, made = (tmp_path / name for name in ("out.json", "out.png", "made.csv"))
    options = [
        "--of", "page", "--budget", "200", "--json", out, "--plot", plot, "--synthesize", made, "--split", "0.75",
    ]  # fmt: skip
    done = wpinq("degrees", views, *options)
    assert (done.code, done.err) == (0, "")
    found = json.loads(out.read_text())
    assert found["cost"] == {"epsilon": 200, "delta": 0}
    assert found["scale"] == {"cdf": pytest.approx(1 / 150), "sequence": pytest.approx(1 / 50)}
    # the noise of one bin is not zero with a chance below 2 exp(-50)
    assert found["noisy"]["cdf"][:4] == found["noisy"]["sequence"][:4] == [3, 2, 1, 0]
    assert found["fit"] == {"cdf": [3, 2, 1], "sequence": [3, 2, 1]}
    assert (found["distinct"], found["records"], found["largest"], found["method"]) == (3, 6, 3, "posterior")
    assert plot.read_bytes().startswith(b"\x89PNG")
    rows = list(csv.reader(made.read_text().splitlines()))
    assert rows[0] == ["user", "page"]
    assert sorted(row[1] for row in rows[1:]) == ["1", "1", "1", "2", "2", "3"]
    assert "3 distinct values, 6 records" in done.out
    assert "Epsilon 0 of 200 is left for views.csv" in done.out


def test_one_question_at_the_full_epsilon_by_default(wpinq, views, tmp_path, remaining):
    out, ledger = tmp_path / "out.json", tmp_path / "ledger"
    done = wpinq("degrees", views, "--of", "page", "--budget", "200", "--json", out, "--ledger", ledger)
    assert (done.code, done.err, remaining(ledger)) == (0, "", 0)
    found = json.loads(out.read_text())
    assert found["scale"] == {"cdf": 0.005, "sequence": 0.005}
    assert found["fit"] == {"cdf": [3, 2, 1], "sequence": [3, 2, 1]}
    assert (found["distinct"], found["records"], found["largest"]) == (3, 6, 3)
    assert "Noise scale 0.005, for epsilon 200 in all." in done.out


def test_again_costs_nothing_and_says_the_same(wpinq, views, tmp_path, remaining):
    ledger, outs = tmp_path / "ledger", [tmp_path / "1.json", tmp_path / "2.json"]
    for out in outs:
        done = wpinq("degrees", views, "--of", "page", "--budget", "0.2", "--ledger", ledger, "--json", out)
        assert done.code == 0
        assert remaining(ledger) == 0
    assert outs[0].read_bytes() == outs[1].read_bytes()


def test_the_budget_is_split_exactly(wpinq, views, tmp_path, remaining):
    ledger, out = tmp_path / "ledger", tmp_path / "out.json"
    wpinq("degrees", views, "--of", "page", "--budget", "1/3", "--split", "1/3", "--ledger", ledger, "--json", out)
    assert remaining(ledger) == 0
    assert json.loads(out.read_text())["scale"] == {"cdf": 9, "sequence": 4.5}


def test_a_new_ledger_has_the_budget_and_the_run_spends_epsilon_of_it(wpinq, views, tmp_path, remaining):
    ledger = tmp_path / "ledger"
    asked, new = (("degrees", views, "--of", "page", "--ledger", path) for path in (ledger, tmp_path / "new"))
    assert wpinq(*asked, "--epsilon", "1/2", "--budget", 3).code == 0
    assert remaining(ledger) == Fraction(5, 2)
    assert wpinq(*asked, "--epsilon", "1/4").code == 0
    assert remaining(ledger) == Fraction(9, 4)
    assert "goes with --accounting renyi" in wpinq(*new, "--rho", 1, "--budget", 3).refused()
    assert "this costs epsilon 4" in wpinq(*new, "--epsilon", 4, "--budget", 3).refused()
    assert not (tmp_path / "new").exists(), "no ledger is made with a budget that cannot pay"
    assert "its budget is epsilon 3" in wpinq(*asked, "--epsilon", "1/8", "--budget", 9).refused()
    assert remaining(ledger) == Fraction(9, 4)


def test_a_larger_budget_that_is_there_is_spent_from(wpinq, views, loud, tmp_path, remaining):
    ledger = tmp_path / "ledger"
    assert wpinq("run", loud, views, "--budget", "200", "--ledger", ledger).code == 0
    assert wpinq("degrees", views, "--of", "page", "--budget", "49.8", "--ledger", ledger).code == 0
    assert remaining(ledger) == Fraction(2, 10)
    refused = wpinq("degrees", views, "--of", "page", "--budget", "0.5", "--ledger", ledger).refused()
    assert "costs epsilon 0.5, 0.2 is left" in refused
    assert remaining(ledger) == Fraction(2, 10)


def test_the_version_of_a_file_is_its_name(wpinq, views, tmp_path):
    outs = [tmp_path / "1.json", tmp_path / "2.json"]
    budget = ["--of", "page", "--budget", "1"]
    assert wpinq("degrees", views, *budget, "--ledger", tmp_path / "1", "--json", outs[0]).code == 0
    assert wpinq("degrees", views, *budget, "--ledger", tmp_path / "2", "--json", outs[1]).code == 0
    assert [json.loads(out.read_text())["version"] for out in outs] == [views.name] * 2
    assert (
        wpinq("degrees", views, *budget, "--data-version", "July", "--ledger", tmp_path / "3", "--json", outs[0]).code
        == 0
    )
    assert json.loads(outs[0].read_text())["version"] == "July"


def test_the_smooth_prior_is_of_two_curves(wpinq, views, tmp_path):
    out = tmp_path / "out.json"
    assert wpinq("degrees", views, "--of", "page", "--budget", "200", "--prior", "smooth", "--json", out).code == 0
    scales = json.loads(out.read_text())["scale"]
    assert (scales["cdf"], scales["sequence"]) == (pytest.approx(1 / 150), pytest.approx(1 / 50))


@pytest.mark.parametrize("method", ["path", "squares", "posterior"])
def test_methods(wpinq, views, tmp_path, method):
    out = tmp_path / "out.json"
    assert wpinq("degrees", views, "--of", "page", "--budget", "200", "--method", method, "--json", out).code == 0
    found = json.loads(out.read_text())
    assert (found["method"], found["fit"]["cdf"]) == (method, [3, 2, 1])


def test_typed_columns_and_no_header(wpinq, tmp_path):
    path, out = tmp_path / "plain.csv", tmp_path / "out.json"
    path.write_text("ann,1\nbob,1\nbob,01\ncid,x\n")
    columns = ["--no-header", "--columns", "user,page:int", "--of", "page"]
    done = wpinq("degrees", path, *columns, "--budget", "200", "--json", out)
    assert done.code == 0
    assert json.loads(out.read_text())["fit"]["cdf"] == [2, 1, 1]  # 1 three times, and one null


PAID = ["--of", "page", "--budget", "1"]
BAD = {
    "missing file": (["no.csv", *PAID], "no such file"),
    "directory": ([".", *PAID], "not of one format"),
    "random bytes": (["noise.parquet", *PAID], "noise.parquet"),
    "unknown ending": (["notes.md", *PAID], "endings"),
    "unknown column": (["views.csv", "--of", "no such", "--budget", "1"], "no column 'no such'"),
    "unknown declared column": (["views.csv", "--columns", "user,url", "--of", "url", "--budget", "1"], "'url'"),
    "unknown type": (["views.csv", "--columns", "page:integre", *PAID], "integre"),
    "column twice": (["views.csv", "--columns", "page,page", *PAID], "twice"),
    "no columns": (["views.csv", "--columns", "", *PAID], "column"),
    "empty file, no columns": (["empty.csv", *PAID], "empty"),
    "no header, no columns": (["views.csv", "--no-header", *PAID], "names"),
    "budget 0": (["views.csv", "--of", "page", "--budget", "0"], "not above zero"),
    "budget negative": (["views.csv", "--of", "page", "--budget", "-1"], "not above zero"),
    "budget nan": (["views.csv", "--of", "page", "--budget", "nan"], "not a finite number"),
    "budget inf": (["views.csv", "--of", "page", "--budget", "inf"], "not a finite number"),
    "budget a word": (["views.csv", "--of", "page", "--budget", "much"], "not a finite number"),
    "budget too small for any fit": (["views.csv", "--of", "page", "--budget", "0.0001"], "too wide"),
    "budget too small for two curves": (
        ["views.csv", "--of", "page", "--budget", "0.002", "--split", "0.5"],
        "too wide",
    ),
    "budget beyond any noise": (["views.csv", "--of", "page", "--budget", "1e400"], "of a size that floats have"),
    "split 0": (["views.csv", *PAID, "--split", "0"], "not above zero"),
    "split 1": (["views.csv", *PAID, "--split", "1"], "not between 0 and 1"),
    "split nan": (["views.csv", *PAID, "--split", "nan"], "not a finite number"),
    "no budget": (["views.csv", "--of", "page"], "--budget"),
    "unknown option": (["views.csv", *PAID, "--speed", "9"], "--speed"),
    "unknown method": (["views.csv", *PAID, "--method", "magic"], "magic"),
    "no directory": (["views.csv", *PAID, "--json", "no/out.json"], "No such file or directory"),
    "a file is no directory": (["views.csv", *PAID, "--json", "notes.md/x"], "Not a directory"),
    "a directory is no file": (["views.csv", *PAID, "--json", "."], "is not a file"),
    "plot ending": (["views.csv", *PAID, "--plot", "out.gif"], ".png, .svg, .pdf"),
    "synthesize ending": (["views.csv", *PAID, "--synthesize", "out.xlsx"], ".parquet"),
    "over the input": (["views.csv", *PAID, "--synthesize", "./views.csv"], "replace"),
    "over the ledger": (["views.csv", *PAID, "--json", "views.csv.ledger"], "replace"),
    "one output twice": (["views.csv", *PAID, "--plot", "o.svg", "--json", "./o.svg"], "replace"),
    "no ledger there": (["views.csv", *PAID, "--ledger", "no/ledger"], "no/ledger"),
    "ledger is text": (["views.csv", *PAID, "--ledger", "notes.md"], "notes.md"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_leaves_nothing(wpinq, views, tmp_path, monkeypatch, case, listing):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "noise.parquet").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "notes.md").write_text("notes\n")
    before = listing(tmp_path)
    arguments, says = BAD[case]
    line = wpinq("degrees", *arguments).refused()
    assert says in line
    after = listing(tmp_path)
    after = {name: content for name, content in after.items() if not name.endswith(".lock")}
    assert after == before


def test_nothing_is_charged_when_more_is_asked_than_is_left(wpinq, views, tmp_path, remaining):
    ledger, out = tmp_path / "ledger", tmp_path / "out.json"
    wpinq("degrees", views, "--of", "page", "--budget", "1", "--ledger", ledger, "--split", "1/4", "--json", out)
    before = out.read_bytes()
    line = wpinq(
        "degrees", views, "--of", "page", "--budget", "1", "--ledger", ledger, "--split", "1/2", "--json", out
    ).refused()
    assert "costs epsilon 1 with what is charged beside it, 0 is left" in line
    assert "0.25 degrees of page: cdf" in line  # what was spent on what
    assert (remaining(ledger), out.read_bytes()) == (0, before)


def test_a_damaged_ledger_is_refused(wpinq, views, tmp_path):
    ledger = tmp_path / "ledger"
    wpinq("degrees", views, "--of", "page", "--budget", "1", "--ledger", ledger)
    content = bytearray(ledger.read_bytes())
    place = content.index(b'"charge"')
    content[place + 1] ^= 1
    ledger.write_bytes(content)
    wpinq("degrees", views, "--of", "page", "--budget", "1", "--ledger", ledger).refused()


DIRTY = {
    "ragged rows": b"user,page\nann,home\nann\nbob,home,x,y\n\n\ncid,home\n",
    "NUL bytes": b"user,page\nann,home\n\0bob,ho\0me\ncid,home\n",
    "wrong encoding": b"user,page\nann,home\nbob,h\xf6me\ncid,home\n",
    "an open quote": b'user,page\nann,home\nbob,"home\ncid,home\n',
}


@pytest.mark.parametrize("case", DIRTY)
def test_dirty_rows_do_not_fail_and_the_curator_is_shown_them(wpinq, tmp_path, case):
    """Failing, or saying a word more than for a clean file, would tell what is in it."""
    path, clean = tmp_path / "views.csv", tmp_path / "clean" / "views.csv"
    path.write_bytes(DIRTY[case])
    clean.parent.mkdir()
    clean.write_bytes(b"user,page\nann,home\ncid,home\n")
    done = wpinq("degrees", path, "--of", "page", "--budget", "0.2")
    assert (done.code, done.err) == (0, "")
    like = wpinq("degrees", clean, "--of", "page", "--budget", "0.2")
    assert (like.code, like.err) == (0, "")
    assert wpinq("check", clean).code == 0
    shown = wpinq("check", path)
    assert shown.code == 1
    assert any(digit in shown.out for digit in "345")  # the number of a line


def test_an_empty_file_with_declared_columns_is_no_error(wpinq, tmp_path):
    path, out = tmp_path / "empty.csv", tmp_path / "out.json"
    path.write_bytes(b"")
    done = wpinq("degrees", path, "--columns", "user,page", "--of", "page", "--budget", "200", "--json", out)
    assert (done.code, done.err) == (0, "")
    assert json.loads(out.read_text())["records"] == 0


def test_what_was_not_foreseen_is_told_by_its_type_alone(wpinq, views, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("ann viewed home")

    monkeypatch.setattr(protection, "open_source", fail)
    line = wpinq("degrees", views, "--of", "page", "--budget", "1").refused()
    assert "RuntimeError" in line
    assert "ann" not in line
