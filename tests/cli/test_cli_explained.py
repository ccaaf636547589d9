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
