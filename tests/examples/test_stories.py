"""Three users' stories, each from a clean start: what they are told is within noise of the truth, and nothing is lost.

Every run draws its own secrets. Each bound below is such that noise passes it with a chance below 1e-6.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
import re
from pathlib import Path

import processes
import pytest
from depth import deep

ROW = re.compile(r"^(.+?) +([\d,]+)((?: +-?[\d,]+ \+- \d+)+) *$", re.MULTILINE)


def told(story: str, out: Path, errors: int = 0) -> str:
    """What a story prints; so many lines of it are for the curator, on standard error."""
    return processes.printed("-W", "error", "-m", f"examples.{story}", out, errors=errors)


def tables(said: str) -> list[list[tuple[str, int, list[tuple[int, int]]]]]:
    """Of each table the rows: a name, the truth, and answers with what noise moves them by (95%)."""
    result = []
    for block in said.split("\n\n"):
        rows = [
            (name, number(truth), [(number(a), int(b)) for a, b in re.findall(r"(-?[\d,]+) \+- (\d+)", answers)])
            for name, truth, answers in ROW.findall(block)
        ]
        if rows:
            result.append(rows)
    return result


def number(text: str) -> int:
    return int(text.replace(",", ""))


def held(rows: list[tuple[str, int, list[tuple[int, int]]]], which: int = -1) -> int:
    """How many intervals hold the truth."""
    return sum(abs(asked[which][0] - truth) <= asked[which][1] for _, truth, asked in rows)


@deep
def test_the_site_owner_counts_visitors_within_noise_where_a_bound_lost_up_to_two_fifths(tmp_path):
    said = told("site_owner", tmp_path / "new")
    tried = tables(said)
    assert [len(rows) for rows in tried] == [6, 6, 6]
    assert sum(map(held, tried)) >= 10, "of 18 at 95%: fewer with a chance of 1e-7"
    late, early = (sum(abs(asked[i][0] - truth) for _, truth, asked in tried[0]) for i in (0, 1))
    assert early < 600 < late, "six draws of scale 20 are further with a chance of 3e-8; what the bound cut is no noise"
    assert max(1 - asked[0][0] / truth for _, truth, asked in tried[0]) > 0.2
    lines = number(re.search(r"of ([\d,]+) whole lines", said)[1])
    kept = number(re.search(r"^records\n([\d,]+) ± ", said, re.MULTILINE)[1])
    lost, give = map(number, re.search(r"records ([\d,]+) ± ([\d,]+)", said).groups())
    assert kept < 0.7 * lines
    assert abs(kept + lost - lines) <= 5 * give, "0.05 ** 5"
    assert "the same answers, at no cost" in said
    assert "records beyond 20 of one host are not in it" in said
    about = json.loads((tmp_path / "new" / "visitors.csv").read_text().splitlines()[0].removeprefix("# "))
    assert about["protects"] == "one host, at most 20 records each"


@deep
def test_the_statistician_counts_joined_rows_and_intervals_hold_the_truth(tmp_path):
    said = told("statistician", tmp_path / "new")
    assert said.startswith("a misspelt method, before anything is charged: ")
    rates = [tuple(map(int, each)) for each in re.findall(r"^(\d+) of (\d+) intervals of", said, re.MULTILINE)]
    assert [many for _, many in rates] == [24, 24, 4, 16]
    assert all(held >= least for (held, _), least in zip(rates, (15, 15, 0, 9), strict=True)), "fewer: below 1e-6 each"
    rows = re.findall(
        r"^(\w+ \w+) +([\d,]+) +[\d,]+ +[\d,]+ +([\d,]+)$", said.split("at most 20 visits")[1], re.MULTILINE
    )
    counted, truth = ([number(row[place]) for row in rows] for place in (1, 2))
    weighed = [number(one) for one in said.split("weighed, those are ")[1].split(", ")]
    assert len(rows) == len(weighed) == 4
    assert all(abs(n - m) <= 400 for n, m in zip(counted, truth, strict=True)), "exp(-20) each, at scale 20"
    assert all(n < m / 2 for n, m in zip(weighed, truth, strict=True)), "what was printed as a count"
    many, true = map(number, re.search(r"over 50,000: ([\d,]+) \+- 50, truth ([\d,]+)", said).groups())
    assert abs(many - true) <= 250, "0.05 ** 5"
    assert (
        json.loads((tmp_path / "new" / "means.csv").read_text().splitlines()[0].removeprefix("# "))["cost"]["epsilon"]
        == 1
    )


@deep
@pytest.mark.slow
def test_the_stream_engineer_loses_nothing_by_a_kill_and_pays_once(tmp_path):
    said = told("stream_engineer", tmp_path / "new", errors=2)
    assert "killed after 2 windows" in said
    assert "ended with exit code 0; answers of before are the same" in said
    rows = re.findall(r"^(\d\d:\d\d:\d\d)  (\S+) +(-?[\d,]+) \+- (\d+) +([\d,]+)$", said, re.MULTILINE)
    times = [dt.datetime.strptime(row[0], "%H:%M:%S") for row in rows if row[1] == "/"]
    assert len(times) >= 5
    assert {(b - a).seconds for a, b in itertools.pairwise(times)} == {2}, "no window is missing"
    errors = [number(row[2]) - number(row[4]) for row in rows]
    held = sum(abs(error) <= int(row[3]) for error, row in zip(errors, rows, strict=True))
    assert held >= len(rows) - 9, "of 15 at 90%: fewer with a chance of 3e-7"
    whole = sum(error for error, row in zip(errors, rows, strict=True) if row[1] == "/")
    assert abs(whole) <= 30 * len(times), "scale 5 each; a lost window would be 240"
    assert "Epsilon 2 of 2 is spent, as before the kill; 0 lines were dropped." in said
