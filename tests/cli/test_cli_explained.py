"""`--explain` says prices and noise, those of counts that are measured together too, in the ledger that there is."""

import re

import polars as pl
import pytest

from wpinq.apps.cli import main

TWO = "SELECT COUNT(*) FILTER (WHERE page = 'a') AS a, COUNT(DISTINCT page) AS b FROM v"
RANGES = "SELECT COUNT(*) FILTER (WHERE n < 5) AS a, COUNT(*) FILTER (WHERE n BETWEEN 5 AND 9) AS b FROM v"


@pytest.mark.parametrize(
    ("query", "options", "words", "times"),
    [
        (TWO, ["--mechanism", "gaussian", "--delta", "1e-6"], "6.1396", 1),
        (TWO, ["--mechanism", "gaussian", "--delta", "1e-6", "--accounting", "renyi", "--ledger-delta", "1e-5"],
         "6.4104", 2),
        (RANGES, [], "2 ranges of n: 3 buckets", 1),
    ],
)  # fmt: skip
def test_the_noise_of_the_ledger_that_there_is(query, options, words, times, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.csv").write_text("user,page,n\nann,a,1\nbob,b,7\n")
    command = ["sql", query, "--from", "v=v.csv", "--columns", "user,page,n:int", "--epsilon", "1", *options]
    for made in (False, True):  # a ledger that is made, and one that is there
        main([*command, "--ledger", "ledger", "--budget", "9", "--explain"])
        text = capsys.readouterr().out
        assert text.count(words) == times
        assert "Protects one record" in text
        assert (tmp_path / "ledger").exists() is made
        if not made:
            main([*command, "--ledger", "ledger", "--budget", "9"])
            capsys.readouterr()


@pytest.mark.parametrize(
    "command",
    [
        ["sql", "SELECT COUNT(*) FROM v", "--from", "v=v.csv"],
        ["table", "v.csv", "--down", "page", "--names-delta", "1e-6"],
        ["degrees", "v.csv", "--of", "page"],
        ["graph", "v.csv", "--steps", "0", "--columns", "user,page"],
        ["graph", "v.csv", "--steps", "0", "--columns", "user,page", "--bipartite"],
    ],
)
def test_what_the_ledger_would_refuse_is_not_priced(command, tmp_path, monkeypatch, capsys):
    """It printed the price of a question about records that a ledger of people refuses."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.csv").write_text("user,page,n\nann,a,1\nbob,b,7\n")
    people = [*command, "--unit", "user", "--at-most", "2", "--epsilon", "1"]
    assert main([*people, "--budget", "3", "--explain"]) == 0
    assert "Protects one user, at most 2 records each." in capsys.readouterr().out
    assert not (tmp_path / "v.csv.ledger").exists()
    assert main([*people, "--budget", "3"]) == 0
    before = (tmp_path / "v.csv.ledger").read_bytes()
    capsys.readouterr()
    assert main([*people, "--explain"]) == 0
    assert "Epsilon 2 of 3 is left" in capsys.readouterr().out
    for other, why in (
        (command, "its privacy unit is 'user (user)', not 'record'"),
        ([*people, "--budget", "4"], "its budget is epsilon 3"),
        ([*people, "--accounting", "renyi"], "--accounting renyi"),
    ):
        epsilon = [] if "--epsilon" in other else ["--epsilon", "1"]
        said = []
        for more in ([], ["--explain"]):
            assert main([*other, *epsilon, *more]) == 2
            said.append(capsys.readouterr().err)
        assert why in said[0]
        assert said[0] == said[1]
    assert (tmp_path / "v.csv.ledger").read_bytes() == before


@pytest.mark.parametrize(
    "command",
    [
        ["sql", "SELECT COUNT(*) FROM v", "--from", "v=v.csv"],
        ["table", "v.csv", "--down", "page", "--names-delta", "1e-6"],
        ["degrees", "v.csv", "--of", "page"],
        ["graph", "v.csv"],
    ],
)
def test_what_a_budget_could_not_pay_is_not_priced(command, tmp_path, monkeypatch, capsys):
    """It printed a price where the same command without --explain refuses the budget."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.csv").write_text("user,page\nann,a\nbob,b\n")
    dear = [["--epsilon", "1", "--budget", "0.5"]]
    dear += [["--rho", "1", "--budget", "2"]] * (command[0] != "graph")
    dear += [["--epsilon", "1", "--rho", "1", "--budget", "2"]] * (command[0] == "graph")
    for options in dear:
        said = []
        for more in ([], ["--explain"]):
            assert main([*command, *options, *more]) == 2
            said.append(capsys.readouterr().err)
        assert "--budget" in said[0]
        assert said[0] == said[1]
    assert [path.name for path in tmp_path.iterdir()] == ["v.csv"]


def test_another_budget_of_rho_is_refused_by_explain_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.csv").write_text("user,page\nann,a\nbob,b\n")
    counted = ["sql", "SELECT COUNT(*) FROM v", "--from", "v=v.csv", "--rho", "1", "--ledger-rho"]
    assert main([*counted, "4"]) == 0
    capsys.readouterr()
    for command in ([*counted, "3"], ["graph", "v.csv", "--epsilon", "1", "--rho", "3"]):
        said = []
        for more in ([], ["--explain"]):
            assert main([*command, *more]) == 2
            said.append(capsys.readouterr().err)
        assert "its budget is rho 4, delta 0.00001, and not rho 3" in said[0]
        assert said[0] == said[1]


@pytest.mark.parametrize(
    ("command", "rows"),
    [
        (["degrees", "v.csv", "--of", "page", "--epsilon", "1", "--unit", "user", "--at-most", "3"],
         {"degrees of page": (3, 3, 3, 9, 1)}),
        (["degrees", "v.csv", "--of", "page", "--epsilon", "2", "--split", "1/4"],
         {"degrees of page: cdf": (1, 1, 2, 6, 0.5), "degrees of page: sequence": (1, 1, 2 / 3, 2, 1.5)}),
        (["graph", "v.csv", "--epsilon", "10"], {"graph: degrees": (2, 2, 2 / 3, 2, 3)}),
        (["graph", "v.csv", "--epsilon", "10", "--bipartite"],
         {"pairs: left degrees": (1, 1, 2 / 3, 2, 1.5), "pairs: butterflies": (3, 3, 0.6, 1.7975, 5)}),
    ],
)  # fmt: skip
def test_degrees_and_graphs_say_their_price_and_their_noise(command, rows, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.csv").write_text("user,page\nann,a\nbob,b\n")
    assert main([*command, "--explain"]) == 0
    shown = {re.split(r"  +", line)[0]: re.split(r"  +", line)[1:] for line in capsys.readouterr().out.splitlines()}
    for name, (moves, most, scale, half, epsilon) in rows.items():
        cells = [float(shown[name][place]) for place in (0, 1, 3, 4, 5)]
        assert cells == pytest.approx([moves, most, scale, half, epsilon], rel=1e-3)
    assert [path.name for path in tmp_path.iterdir()] == ["v.csv"], "neither ledger nor file is made"


def test_a_bound_that_would_be_chosen_has_no_price_yet(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.csv").write_text("user,page\nann,a\nbob,b\n")
    command = ["degrees", "v.csv", "--of", "page", "--epsilon", "1", "--unit", "user", "--at-most", "auto"]
    assert main([*command, "--bound-epsilon", "0.1", "--explain"]) == 2
    assert "--at-most auto: is chosen when records are read" in capsys.readouterr().err


def test_plans_and_checks_move_no_cursor(tmp_path, monkeypatch, capsys):
    """The name of a column stood as it is in a plan, and in what check says."""
    monkeypatch.chdir(tmp_path)
    name = "p\x1b[31mq\nz"
    pl.DataFrame({"user": ["ann", "bob"], name: ["a", None]}).write_parquet("v.parquet")
    query = f'SELECT COUNT(DISTINCT "{name}") FROM v'
    for command in (["sql", query, "--from", "v=v.parquet", "--epsilon", "1", "--explain"],
                    ["explain", "page_views", "v.parquet"], ["check", "v.parquet"]):  # fmt: skip
        main(command)
        shown = capsys.readouterr()
        assert "\x1b" not in shown.out + shown.err
        assert not any(line.startswith("z") for line in shown.out.splitlines()), shown.out
