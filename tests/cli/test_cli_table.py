"""`wpinq table`: a table from one charge, and what is refused before anything is."""

import re

import polars as pl
import pytest


@pytest.fixture
def staff(tmp_path):
    path = tmp_path / "staff.csv"
    rows = [(f"p{i % 50}", "IT" if i % 3 else "HR", i % 2) for i in range(200)]
    pl.DataFrame(rows, schema=["person", "team", "floor"], orient="row").write_csv(path)
    return path


def test_a_table_of_people(wpinq, staff, tmp_path, remaining):
    values = tmp_path / "values.csv"
    values.write_text("team,IT\nteam,HR\nfloor,0\nfloor,1\n")
    page, saved, ledger = (tmp_path / name for name in ("t.html", "t.csv", "ledger"))
    whom = ("--columns", "person,team,floor", "--unit", "person", "--at-most", "4")
    what = ("--down", "team", "--across", "floor", "--categories", values, "--epsilon", 4000, "--listed")
    asked = ("table", staff, *whom, *what, "--ledger", ledger)
    done = wpinq(*asked, "--explain")
    assert (done.code, done.err, ledger.exists()) == (0, "", False)
    assert "one person" in done.out
    done = wpinq(*asked, "--html", page, "--save", saved, "--title", "Staff")
    assert (done.code, done.err, remaining(ledger)) == (0, "", 0)
    assert done.out.startswith("Staff\n\nteam    0    1  all\nIT ")
    assert "--unit COLUMN" not in done.out
    assert pl.read_csv(saved, comment_prefix="#").filter(pl.col("team") == "all")["count"].to_list() == [100, 100, 200]
    assert "<caption>Staff</caption>" in page.read_text()
    again = wpinq(*asked)
    assert (again.code, remaining(ledger)) == (0, 0) and "200" in again.out


def test_sums_means_and_medians_are_priced_before_they_are_charged(wpinq, staff, tmp_path, remaining):
    values, ledger = tmp_path / "values.json", tmp_path / "ledger"
    values.write_text('{"team": ["HR", "IT"]}')
    numbers = ("--sum", "floor", "--mean", "floor", "--median", "floor", "--bounds", "floor=0..1")
    asked = ("table", staff, "--columns", "person,team,floor:int", "--down", "team", "--categories", values,
             "--epsilon", 3000, "--ledger", ledger, "--listed", *numbers)  # fmt: skip
    done = wpinq(*asked, "--explain")
    assert (done.code, done.err, ledger.exists()) == (0, "", False)
    assert [f'SELECT "team", {what}' in done.out for what in ('COUNT(*) AS "count", AVG("floor")', 'MEDIAN("floor")')]
    assert done.out.count("1,000") + done.out.count("1000") >= 3  # epsilon of each
    done = wpinq(*asked)
    assert (done.code, done.err, remaining(ledger)) == (0, "", 0)
    assert done.out.startswith("team  count  sum of floor")
    assert "Protects one record, which need not be all of one person's; --unit COLUMN" in done.out


def test_a_hierarchy_is_read_from_lines(wpinq, staff, tmp_path):
    codes = tmp_path / "codes.csv"
    codes.write_text("IT,tech,staff\nHR,office,staff\nPR,office\n")
    asked = ("table", staff, "--columns", "person,team,floor", "--down", "team", "--epsilon", 2000, "--listed")
    done = wpinq(*asked, "--hierarchy", f"team={codes}")
    assert (done.code, done.err) == (0, "")
    lines = [line.split() for line in done.out.splitlines()[1:8]]
    assert lines == [["staff", "200"], ["tech", "133"], ["IT", "133"], ["office", "67"], ["HR", "67"], ["PR", "0"],
                     ["all", "200"]]  # fmt: skip
    codes.write_text("IT,tech\nIT,office\n")
    assert "line 2: a code has two parents" in wpinq(*asked, "--hierarchy", f"team={codes}").refused()
    assert "write COLUMN=FILE" in wpinq(*asked, "--hierarchy", "team").refused()
    assert "cannot be read" in wpinq(*asked, "--hierarchy", "team=nope.csv").refused()


def test_public_numbers_are_kept(wpinq, staff, tmp_path):
    values, kept, ledger = tmp_path / "values.json", tmp_path / "kept.csv", tmp_path / "ledger"
    values.write_text('{"team": ["HR", "IT"], "floor": ["0", "1"]}')
    kept.write_text("team,floor,count\nHR,,67\n,,200\n")
    asked = ("table", staff, "--columns", "person,team,floor", "--down", "team", "--across", "floor", "--epsilon", "1",
             "--categories", values, "--listed", "--ledger", ledger)  # fmt: skip
    assert "write COLUMN=VALUE" in wpinq(*asked, "--keep", "team=HR:many").refused()
    assert "no table has all" in wpinq(*asked, "--keep", kept, "--keep", "team=IT:5").refused()
    assert not ledger.exists()
    done = wpinq(*asked, "--keep", kept, "--keep", "team=IT,floor=0:66")
    assert (done.code, done.err) == (0, "")
    rows = [line.split() for line in done.out.splitlines()[1:4]]
    assert (rows[0][3], rows[1][1], rows[1][3], rows[2][3]) == ("67*", "66*", "133", "200*")


def test_names_that_nobody_listed_are_priced_and_told(wpinq, staff, tmp_path, remaining):
    ledger = tmp_path / "ledger"
    asked = ("table", staff, "--columns", "person,team,floor", "--down", "team", "--epsilon", 2000, "--ledger", ledger,
             "--names-delta", "1e-6")  # fmt: skip
    done = wpinq(*asked, "--explain")
    assert (done.code, done.err, ledger.exists()) == (0, "", False)
    assert "names of team of enough records: epsilon 1000, delta" in done.out
    done = wpinq(*asked)
    assert (done.code, done.err, remaining(ledger)) == (0, "", 0)
    assert done.out.startswith("team   count\nHR        67\nIT       133\nother      0\nall      200\n")


@pytest.mark.parametrize(
    ("text", "more", "match"),
    [
        ("team,IT\n", [], "give --epsilon"),
        ("team,IT\n", ["--epsilon", "1", "--rho", "1"], "give --epsilon"),
        ("nope,IT\n", ["--epsilon", "1"], "line 1: 'nope' is no column of the table; the columns .* are team"),
        ("team\n", ["--epsilon", "1"], "line 1: write COLUMN,VALUE; the columns of the table are team"),
        ('team,IT\nteam,"HR\nteam,PR\n', ["--epsilon", "1"], "line 3: is no CSV: unexpected end of data"),
        ("team," + "x" * 200_000, ["--epsilon", "1"], "line 1: is no CSV: field larger"),
        ("team,IT\rnope,HR", ["--epsilon", "1"], "line 2: 'nope' is no column of the table"),
        ('team,"I\nT"\n', ["--epsilon", "1"], "cannot be printed"),
        ('{"team": ["IT"], "team": ["HR"]}', ["--epsilon", "1"], "lists a column twice"),
        ("{", ["--epsilon", "1"], "no JSON of lists"),
        ('{"team": [[1]]}', ["--epsilon", "1"], "no JSON of lists"),
        ('{"team": []}', ["--epsilon", "1"], "list the values"),
        ("", ["--epsilon", "1"], "list the values"),
        ("team,IT\n", ["--epsilon", "1", "--save", "t.xlsx"], "must end in"),
        ("floor,0\n", ["--epsilon", "1", "--across", "floor"], "list the values of 'team'.*--names-delta"),
        ("team,IT\n", ["--epsilon", "1", "--sum", "floor"], "holds text, no numbers"),
        ("team,IT\n", ["--epsilon", "1", "--mean", "floor", "--columns", "person,team,floor:int"], "LOW..HIGH"),
        ("team,IT\n", ["--epsilon", "1", "--bounds", "floor=0"], r"write WHAT=LOW\.\.HIGH"),
        ("team,IT\n", ["--epsilon", "1", "--title", "\udcff"], "cannot be printed"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_before_a_ledger_is_made(wpinq, staff, tmp_path, text, more, match):
    values, ledger = tmp_path / "values", tmp_path / "ledger"
    values.write_text(text)
    columns = [] if "--columns" in more else ["--columns", "person,team,floor"]
    done = wpinq("table", staff, *columns, "--down", "team", "--categories", values, "--ledger", ledger, *more)
    assert re.search(match, done.refused())
    assert not ledger.exists()


@pytest.mark.parametrize("cost", [("--epsilon", 4000), ("--rho", 10**6)])
def test_several_tables_are_planned_for_nothing_and_then_measured(wpinq, staff, tmp_path, cost):
    values, saved, ledger = tmp_path / "values.json", tmp_path / "t.parquet", tmp_path / "ledger"
    values.write_text('{"team": ["IT", "HR"], "floor": [0, 1]}')
    wanted = ("--want", "team", "--want", "floor, team", "--want", "", "--categories", values, *cost, "--listed")
    command = ("table", staff, "--unit", "person", "--at-most", "4", *wanted, "--ledger", ledger)
    done = wpinq(*command, "--plan")
    assert (done.code, done.err, ledger.exists()) == (0, "", False)
    kind = "measured" if cost[0] == "--epsilon" else "residual"
    assert kind in done.out and "(all)" in done.out and "one person" in done.out
    assert wpinq(*command, "--plan", "--aim", "max").code == 0
    done = wpinq(*command, "--save", saved)
    assert (done.code, done.err) == (0, "") and f"Written: {saved}" in done.out and "All tables agree" in done.out
    counts = dict(pl.read_parquet(saved).filter(pl.col("table") == "team").select("team", "count").rows())
    assert counts == pytest.approx({"IT": 133, "HR": 67}, abs=0.02)
    again = wpinq(*command)
    assert again.code == 0 and "133" in again.out


@pytest.mark.parametrize(
    ("more", "match"),
    [
        (["--down", "team", "--plan"], "--plan: is of several tables"),
        (["--down", "team", "--aim", "max"], "--aim: is of several tables"),
        (["--want", "team", "--aim", "min"], "--aim min: write cells, tables or max"),
        (["--want", "team", "--down", "team"], "--want: is of counts, and takes no --down"),
        (["--want", "team", "--title", "Staff"], "--want: is of counts, and takes no --down"),
        (["--want", "team", "--plan", "--save", "t.csv"], "leave out --save"),
        (["--want", "team,team"], "different names"),
        (["--want", "team", "--want", "floor"], "list the values of 'floor'"),
        (["--down", "floor"], "line 1: 'team' is no column of the table; the columns of the table are floor."),
    ],
)
def test_options_that_do_not_go_together_are_refused_before_a_ledger_is_made(wpinq, staff, tmp_path, more, match):
    values, ledger = tmp_path / "values", tmp_path / "ledger"
    values.write_text("team,IT\n")
    done = wpinq("table", staff, "--categories", values, "--epsilon", 1, "--ledger", ledger, *more)
    assert match in done.refused()
    assert not ledger.exists()
