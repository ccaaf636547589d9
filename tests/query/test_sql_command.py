"""`wpinq sql`: files, SQLite, a real PostgreSQL; what is charged, what is written, what is refused."""

import json
import re
import sqlite3
from collections import Counter
from contextlib import closing
from fractions import Fraction

import polars as pl
import pytest
from depth import deep
from servers import PASSWORD, postgres

from wpinq.apps.cli import main
from wpinq.core.ledger import Ledger

ROWS = [(f"u{i % 150}", f"p{i % 7 if i % 3 else 0}") for i in range(3000)]
COUNTS = Counter(page for _, page in ROWS)
QUERY = "SELECT page, COUNT(*) AS c FROM views GROUP BY page HAVING c >= 50 ORDER BY page"
LOUD = 400  # noise that is zero but for a chance of exp(-400)


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "views.csv").write_text("user,page\n" + "".join(f"{user},{page}\n" for user, page in ROWS))
    (tmp_path / "pages.csv").write_text("page,topic\np0,front\np1,press\np2,press\n")

    def call(*arguments):
        code = main(["sql", *map(str, arguments)])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    return call


def test_what_was_charged_before_is_not_said_to_cost_again(run):
    """It printed the cost of the first time each time."""
    common = ("SELECT COUNT(*) AS c FROM views", "--from", "views=views.csv", "--epsilon", 1, "--budget", 3)
    first, second = run(*common)[1], run(*common)[1]
    assert "Cost: epsilon 1. Epsilon 2 of 3 is left" in first
    assert "Cost: epsilon 1, charged before; nothing was charged now. Epsilon 2 of 3 is left" in second


def test_a_delta_that_is_charged_now_is_not_said_to_be_charged_before(run, tmp_path):
    """Only epsilons were compared, and the counts were charged before, for groups that were named."""
    (tmp_path / "keys.csv").write_text("p0\n")
    common = ("SELECT page, COUNT(*) AS c FROM views GROUP BY page", "--from", "views=views.csv", "--epsilon", 1)
    assert run(*common, "--keys", "keys.csv", "--budget", 3)[0] == 0
    assert "Cost: epsilon 1, delta 1e-06. Epsilon 2 of 3 is left" in run(*common, "--delta", "1e-6")[1]
    assert "delta 1e-06, charged before; nothing was charged now" in run(*common, "--delta", "1e-6")[1]


def test_an_answer_is_printed_and_written(run, tmp_path):
    common = ("--from", "views=views.csv", "--epsilon", LOUD, "--delta", "1e-6", "--budget", 1000)
    code, out, _ = run(QUERY, *common, "--json", "out.json")
    assert code == 0
    assert out.splitlines()[0].split() == ["page", "c"]
    content = json.loads((tmp_path / "out.json").read_text())
    assert content["columns"] == ["page", "c"]
    assert [tuple(row) for row in content["rows"]] == sorted(COUNTS.items())
    assert all(none is None and low == high for none, (low, high) in content["intervals"])
    assert content["cost"] == {"epsilon": LOUD, "delta": 1e-6}
    assert content["threshold"] == 2
    assert "What has a noisy weight below 2 is left out: whoever is alone does not show." in out
    again = out.split("Its ledger is new")[0]  # which the second run has no reason to say
    again = again.replace("delta 1e-06.", "delta 1e-06, charged before; nothing was charged now.")
    assert run(QUERY, *common)[1] == again  # the same command: the same answers, free
    assert Ledger.existing(tmp_path / "views.csv.ledger").remaining() == 600
    assert run(QUERY, *common[:-2])[1] == again  # the ledger knows its budget


def test_explain_is_a_word_of_the_query_too(run, tmp_path):
    common = ("--from", "views=views.csv", "--epsilon", 1, "--delta", "1e-6", "--budget", 3)
    code, out, _ = run(f"EXPLAIN {QUERY}", *common)
    assert (code, out) == run(QUERY, *common, "--explain")[:2]
    assert code == 0
    assert not (tmp_path / "views.csv.ledger").exists()


def test_a_budget_of_three_is_three_queries_with_delta(run, tmp_path):
    """A new ledger allows delta as often as epsilon, and an old one is opened by its epsilon whatever delta it has."""
    common = ("--from", "views=views.csv", "--budget", 3, "--epsilon")
    asked = [QUERY.replace("GROUP", f"WHERE page <> 'p{i}' GROUP") for i in range(4)]
    assert [run(query, *common, 1, "--delta", "1e-6")[0] for query in asked] == [0, 0, 0, 2]
    ledger = Ledger.existing(tmp_path / "views.csv.ledger")
    assert (ledger.remaining(), ledger.delta_budget, ledger.spent()[1] * 10**6) == (0, ledger.spent()[1], 3)
    ledger.raise_budget(4)
    code, _, err = run("SELECT COUNT(*) FROM views", *common, 1)
    assert (code, "its budget is epsilon 4" in err) == (2, True)
    common = ("--from", "views=views.csv", "--budget", 4, "--epsilon")
    assert run("SELECT COUNT(*) FROM views", *common, "1/2")[0] == 0
    code, _, err = run(asked[3], *common, "1/2", "--delta", "1e-6")
    assert (code, "costs delta 0.000001 with what is charged beside it, 0 is left" in err) == (2, True)


def test_a_table_without_rows_says_why(run):
    code, out, _ = run(QUERY, "--from", "views=views.csv", "--epsilon", "0.001", "--delta", "1e-6", "--budget", 1)
    assert code == 0
    assert "No group is shown." in out
    assert "What has a noisy weight below 13" in out


def test_a_ledger_of_any_budget_allows_delta_below_one(run, tmp_path):
    assert run(QUERY, "--from", "views=views.csv", "--epsilon", 1, "--delta", "0.3", "--budget", 9)[0] == 0
    assert Ledger.existing(tmp_path / "views.csv.ledger").delta_budget == Fraction(9, 10)


def test_types_of_public_tables(run, tmp_path):
    (tmp_path / "views.csv").write_text("user,page\n" + "".join(f"u{i},{i % 5}\n" for i in range(500)))
    (tmp_path / "sizes.csv").write_text("page,size\n0,3\n1,4\n2,5\n")
    query = "SELECT COUNT(*) AS n FROM views JOIN sizes ON views.page = sizes.page WHERE size > 3"
    common = (
        "--from", "views=views.csv", "--columns", "user,page:int", "--public", "sizes=sizes.csv", "--budget", 10**6,
    )  # fmt: skip
    code, out, err = run(query, *common, "--columns", "sizes:page:int,size:int", "--epsilon", LOUD)
    assert (code, out.splitlines()[1]) == (0, "200 ± 0"), err


def test_sums_within_declared_bounds(run, tmp_path):
    (tmp_path / "paid.csv").write_text("zip,income\n" + "".join(f"{i % 3},{i}\n" for i in range(600)))
    (tmp_path / "keys").write_text("0\n2\n")
    query = "SELECT zip, SUM(income) AS total, AVG(income) AS mean FROM paid GROUP BY zip"
    common = ("--from", "paid=paid.csv", "--columns", "zip:int,income:int", "--epsilon", 10**5, "--keys", "keys")
    assert run(query, *common)[0] == 2
    assert not (tmp_path / "paid.csv.ledger").exists()
    code, out, err = run(query, *common, "--bounds", "income=0..600")
    assert (code, err) == (0, "")
    cells = [re.split(" {2,}", line) for line in out.splitlines()[1:3]]
    rows = [[float(cell.split()[0].replace(",", "")) for cell in row] for row in cells]
    for zip_, total, mean in rows:
        assert total == pytest.approx(sum(range(int(zip_), 600, 3)), abs=0.4)
        assert mean == pytest.approx(total / 200, abs=0.1)
    assert [row[0] for row in rows] == [0, 2]
    assert "Intervals are of noise alone, with probability 0.95 each." in out
    assert "Beside noise: numbers of SUM(income) are clamped to 0..600; numbers of AVG(income) are" in out


@pytest.mark.parametrize("keys", ["p1\nnowhere\n", "page\np1\nnowhere\n", "\ufeffp1\nnowhere\n", '["p1", "nowhere"]'])
def test_keys_are_answered_present_or_not(run, tmp_path, keys):
    (tmp_path / "keys").write_text(keys)
    query = "SELECT page, COUNT(*) FROM views GROUP BY page"
    code, out, _ = run(query, "--from", "views=views.csv", "--epsilon", LOUD, "--keys", "keys")
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()[1:3]] == [["p1", str(COUNTS["p1"])], ["nowhere", "0"]]


def test_a_first_line_of_keys_that_names_the_columns_is_no_group(run, tmp_path):
    """It was a group of its own, while a release file left it out. Any other line is a group."""
    (tmp_path / "keys").write_text("place\np1\nplace\n")
    query = "SELECT upper(page) || '' AS place, COUNT(*) FROM views GROUP BY 1 ORDER BY 1"
    _, out, _ = run(query, "--from", "views=views.csv", "--epsilon", LOUD, "--keys", "keys")
    assert [line.split()[0] for line in out.partition("\n\n")[0].splitlines()[1:]] == ["p1", "place"]


@pytest.mark.parametrize("keys", ["p1,0\n,1\n", '[["p1", 0], [null, 1]]'])
def test_an_empty_field_of_keys_is_null(run, tmp_path, keys):
    """It was the empty text, so a total of ROLLUP was shown as 0, while a release file read the same lines right."""
    (tmp_path / "keys").write_text(keys)
    query = "SELECT page, COUNT(*) AS c FROM views GROUP BY ROLLUP (page)"
    _, out, _ = run(query, "--from", "views=views.csv", "--epsilon", LOUD, "--keys", "keys")
    rows = [line.split()[:2] for line in out.partition("\n\n")[0].splitlines()[1:]]
    assert rows == [["p1", str(COUNTS["p1"])], ["NULL", f"{len(ROWS):,}"]]


def test_keys_of_parquet_and_a_table_that_is_saved(run, tmp_path):
    pl.DataFrame({"place": ["p1", "nowhere", None]}).write_parquet(tmp_path / "keys.parquet")
    query = "SELECT page, COUNT(*) AS c FROM views GROUP BY page"
    common = ("--from", "views=views.csv", "--epsilon", LOUD, "--keys", "keys.parquet")
    assert run(query, *common, "--save", "out.csv", "--json", "out.json")[0] == 0
    saved = pl.read_csv(tmp_path / "out.csv", comment_prefix="#")
    assert saved.columns == ["page", "c", "low", "high"]
    assert saved["c"].to_list() == [COUNTS["p1"], 0, 0]
    assert [row[1] for row in json.loads((tmp_path / "out.json").read_text())["rows"]] == saved["c"].to_list()
    code, _, err = run(query, *common, "--save", "out.json")
    assert (code, "must end in one of .csv, .parquet" in err) == (2, True)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("header", ["whose,which", "which,whose"])
def test_a_header_of_keys_may_be_that_of_the_answer_in_any_order(run, tmp_path, header, ending):
    """A header by the answer's names was a group of its own, and columns in another order named other groups."""
    keys = pl.DataFrame({"whose": ["u1", "u2"], "which": ["p1", "p9"]}).select(header.split(","))
    keys.write_csv(tmp_path / "keys.csv")
    keys.write_parquet(tmp_path / "keys.parquet")
    query = "SELECT user AS whose, lower(page) AS which, COUNT(*) AS c FROM views GROUP BY 1, 2"
    asked = ("--from", "views=views.csv", "--epsilon", LOUD, "--keys", f"keys.{ending}", "--save", "out.csv")
    assert run(query, *asked)[0] == 0
    counts = pl.read_csv(tmp_path / "out.csv", comment_prefix="#")["c"].to_list()
    assert counts == [ROWS.count(("u1", "p1")), 0]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_groups_of_a_saved_answer_are_keys(run, ending):
    """Its first line was read as 17 columns."""
    common = ("--from", "views=views.csv", "--epsilon", LOUD)
    query = "SELECT COUNT(*) AS c, page AS p FROM views WHERE page <> 'p1' GROUP BY page"
    assert run(query, *common, "--delta", "1e-6", "--budget", 3 * LOUD, "--save", f"found.{ending}")[0] == 0
    code, out, _ = run(query, *common, "--keys", f"found.{ending}")
    shown = {line.split()[-1] for line in out.partition("\n\n")[0].splitlines()[1:]}
    assert (code, shown) == (0, set(COUNTS) - {"p1"})


def test_explain_prices_the_choice_of_a_bound(run):
    """It said to ask in Python, though the command answers."""
    common = ("--from", "views=views.csv", "--unit", "user", "--at-most", "auto", "--epsilon", 1, "--explain")
    for query, more in (("SELECT COUNT(*) FROM views", ()), ("SELECT page, COUNT(*) FROM views GROUP BY 1", (
        "--delta", "1e-6"))):  # fmt: skip
        code, out, err = run(query, *common, *more)
        assert (code, err) == (0, "")
        assert "at_most, chosen by people's numbers of records" in out and "ask by measure" not in out


def test_keys_of_another_type_are_refused_by_the_name_of_their_option(run, tmp_path):
    """It said "observe", which nobody had called."""
    pl.DataFrame({"n": ["3"]}).write_parquet(tmp_path / "keys.parquet")
    query = "SELECT length(page) AS n, COUNT(*) FROM views GROUP BY 1"
    code, _, err = run(query, "--from", "views=views.csv", "--epsilon", 1, "--keys", "keys.parquet")
    assert code == 2
    assert err.startswith("wpinq: --keys: keys.parquet: str does not fit; bins of column")


def test_each_number_is_shown_with_its_own_interval(run, tmp_path):
    """One line for a column said the widest of all, which a mean over few records has."""
    (tmp_path / "paid.csv").write_text("zip,income\n" + "".join(f"{i % 50 and 1},{i}\n" for i in range(600)))
    (tmp_path / "keys").write_text("0\n1\n")
    query = "SELECT zip, AVG(income) AS mean FROM paid GROUP BY zip"
    code, out, _ = run(query, "--from", "paid=paid.csv", "--columns", "zip:int,income:int", "--epsilon", 100, "--keys",
                       "keys", "--bounds", "income=0..600", "--json", "out.json")  # fmt: skip
    ends = [row[1] for row in json.loads((tmp_path / "out.json").read_text())["intervals"]]
    halves = [float(line.split("± ")[1]) for line in out.splitlines()[1:3]]
    assert code == 0
    assert halves == pytest.approx([(high - low) / 2 for low, high in ends], rel=0.1)
    assert halves[0] > 10 * halves[1]


def test_people_and_public_tables(run):
    query = "SELECT topic, COUNT(DISTINCT user) AS people FROM views JOIN pages USING (page) GROUP BY topic ORDER BY 1"
    tables = ("--from", "views=views.csv", "--public", "pages=pages.csv", "--unit", "user", "--at-most", 20)
    code, out, err = run(query, *tables, "--epsilon", 4000, "--delta", "1e-6")
    assert (code, err) == (0, "")
    pages = {"p0": "front", "p1": "press", "p2": "press"}
    people = {topic: len({user for user, page in ROWS if pages.get(page) == topic}) for topic in ("front", "press")}
    assert "Beside noise: records beyond 20 of one user are not in it." in out
    found = dict(line.split()[:2] for line in out.splitlines()[1:3])
    assert int(found["front"]) == people["front"]  # each of them has more than 20 records there
    assert 0 < int(found["press"]) <= people["press"]


@deep
def test_sqlite_and_postgres_answer_alike(run, tmp_path):
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
        connection.execute("CREATE TABLE views (user TEXT, page TEXT)")
        connection.executemany("INSERT INTO views VALUES (?, ?)", ROWS)
    connection.close()
    common = ("--epsilon", LOUD, "--delta", "1e-6", "--ledger")
    code, lite, _ = run(QUERY, "--from", "views=sqlite:shop.db?table=views", *common, "lite.ledger")
    assert code == 0
    with postgres() as url:
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute('CREATE TABLE views ("user" text, page text)')
            cursor.executemany("INSERT INTO views VALUES ($1, $2)", ROWS)
        code, out, err = run(QUERY, "--from", f"views={url}?table=views", *common, "server.ledger")
        assert (code, err) == (0, "")
        assert out.splitlines()[:8] == lite.splitlines()[:8]
        wrong = f"views={url.replace(PASSWORD, 'wrong-' + PASSWORD)}?table=views"
        for arguments in (
            [wrong, *common, "x"],
            [f"views={url}?table=none", *common, "x"],
            [f"views={url}?table=views", "--epsilon", 1],
        ):
            code, out, err = run(
                QUERY, "--from", *arguments, *(["--delta", "1e-6"] if "--delta" not in arguments else [])
            )
            assert code == 2
            assert err.count("\n") == 1
            assert PASSWORD not in err + out
    assert not (tmp_path / "x").exists()
    assert all(PASSWORD.encode() not in path.read_bytes() for path in tmp_path.glob("server.ledger*"))


@pytest.mark.parametrize(
    ("query", "more", "reason"),
    [
        ("SELECT page, COUNT(*) FROM views GROUP BY page", (), "give --keys FILE, or --delta"),
        ("SELECT SUM(page) FROM views", (), "need declared bounds"),
        ("SELECT SUM(page) FROM views", ("--epsilon", "1", "--bounds", "page=0"), "write WHAT=LOW..HIGH"),
        ("SELECT SUM(page) FROM views", ("--epsilon", "1", "--bounds", "page=0..1"), "of the type text"),
        ("SELECT * FROM views", (), "would show records"),
        ("SELECT COUNT(*) FROM people", (), "no table 'people'"),
        ("SELECT COUNT(*) FROM views WHERE user = 'it", (), "not SQL"),
        ("SELECT COUNT(*) FROM views", ("--epsilon", "0"), "epsilon"),
        ("SELECT COUNT(*) FROM views", ("--epsilon", "1", "--at-most", "3"), "goes with --unit"),
        ("SELECT COUNT(*) FROM views", ("--epsilon", "1", "--public", "pages"), "write NAME=SOURCE"),
        ("SELECT COUNT(*) FROM views", ("--epsilon", "1", "--json", "no/where.json"), "cannot be written"),
        ("SELECT COUNT(*) FROM views", ("--epsilon", "1", "--json", "views.csv"), "would replace"),
        ("SELECT page, COUNT(*) FROM views GROUP BY page", ("--epsilon", "1", "--keys", "nothing"), "cannot be read"),
        ("SELECT page, user, COUNT(*) FROM views GROUP BY 1, 2", ("--epsilon", "1", "--keys", "pages.csv", "--columns",
                                                                 "user,page:int"),
         "--keys: pages.csv: 'page' does not read as the type integer."),
    ],
)  # fmt: skip
def test_refused_in_one_line_before_a_ledger_is_made(run, tmp_path, query, more, reason):
    code, out, err = run(query, "--from", "views=views.csv", *(more if "--epsilon" in more else ("--epsilon", "1")))
    assert (code, out) == (2, "")
    assert reason in err
    assert err.count("\n") == 1
    assert not (tmp_path / "views.csv.ledger").exists()


def test_explain_charges_nothing(run, tmp_path):
    assert (
        "protect(visits)"
        in run("SELECT COUNT(*) FROM visits", "--from", "visits=views.csv", "--epsilon", 1, "--explain")[1]
    )
    code, out, _ = run(QUERY, "--from", "views=views.csv", "--epsilon", 1, "--explain")
    assert code == 0
    assert "measure(epsilon=1)" in out
    assert "protect" in out
    assert not (tmp_path / "views.csv.ledger").exists()


def test_explain_tells_how_far_noise_moves_a_sum(run, tmp_path):
    (tmp_path / "sold.csv").write_text("pieces\n2\n3\n")
    form = ("--from", "sold=sold.csv", "--columns", "pieces:int", "--bounds", "pieces=0..10", "--epsilon", 1)
    code, out, _ = run("EXPLAIN SELECT SUM(pieces) AS n, COUNT(*) AS k FROM sold", *form)
    assert code == 0
    _, head, *rows = [re.split(r"\s{2,}", line) for line in out.splitlines()]
    told = {row[0]: dict(zip(head, row, strict=True)) for row in rows if len(row) == len(head)}
    assert 59 < float(told["SUM(pieces), clamped to 0..10"]["95% of noise within"]) < 61  # scale 10 at epsilon 1/2
    assert not (tmp_path / "sold.csv.ledger").exists()


def test_the_functions_of_expressions_are_listed(run):
    code, out, _ = run("--functions")
    assert code == 0
    assert "split_part(text, 'mark', n)\n    the n-th part" in out
    assert all(said in out for said in ("with these differences", "ASCII letters alone", "up to the year 2099"))
