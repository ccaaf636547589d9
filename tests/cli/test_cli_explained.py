"""`wpinq sql --explain` says the noise of counts that are measured together, in the ledger that there is."""

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
    ],
)
def test_what_the_ledger_would_refuse_is_not_priced(command, tmp_path, monkeypatch, capsys):
    """It printed the price of a question about records that a ledger of people refuses."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.csv").write_text("user,page,n\nann,a,1\nbob,b,7\n")
    people = [*command, "--unit", "user", "--at-most", "2", "--epsilon", "1"]
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
