"""A query tells how much a bound and a threshold left out, where that is asked and paid for."""

import json
from fractions import Fraction

import pytest
from depth import deep

import wpinq
from wpinq.apps.cli import main

LOUD = 4000
ROWS = [(f"u{i % 50}", f"p{min(i % 100, 3) if i % 50 else i}") for i in range(3000)]
"""50 users of 60 views each; those of one are of pages that nobody else sees."""
QUERY = "SELECT page, COUNT(*) AS n FROM v GROUP BY page"


def views(budget=10**5, **unit):
    unit = wpinq.users("user", **unit) if unit else None
    return wpinq.protect(ROWS, budget=budget, delta=0.1, columns={"user": str, "page": str}, unit=unit, name="v")


def test_records_people_and_hidden_groups_are_told():
    v = views(at_most=20)
    answer = wpinq.sql(QUERY, {"v": v}, epsilon=LOUD, delta="1e-6", loss=LOUD)
    told = dict(answer.loss)
    assert told["people"] == 50
    assert told["records"] == pytest.approx(50 * 40, abs=2)
    shown = sum(n for _, n in answer)
    assert told["in groups that are not shown"] == 50 * 20 - shown > 0
    assert answer.content()["loss"]["rows"][0] == ("people", 50)
    assert v._node.data.ledger.spent()[0] == 2 * LOUD
    wpinq.sql(QUERY, {"v": v}, epsilon=LOUD, delta="1e-6", loss=LOUD)
    assert v._node.data.ledger.spent()[0] == 2 * LOUD


def test_only_what_leaves_something_out_is_paid():
    by_keys = wpinq.sql(QUERY, {"v": views(at_most=20)}, epsilon=1, loss=1, keys=["p1"])
    assert [row[0] for row in by_keys.loss] == ["people", "records"]
    assert by_keys.loss.measurements[0].epsilon == 1
    by_records = wpinq.sql(QUERY, {"v": views()}, epsilon=LOUD, delta="1e-6", loss=LOUD)
    assert [row[0] for row in by_records.loss] == ["in groups that are not shown"]
    for tables, more in (({"v": views()}, {"keys": ["p1"]}), ({"v": views(shared=True)}, {"keys": ["p1"]})):
        with pytest.raises(wpinq.PlanError, match=r"sql\(loss=\.\.\.\): no bound .* leaves anything out"):
            wpinq.sql(QUERY, tables, epsilon=1, loss=1, **more)
        assert tables["v"]._node.data.ledger.spent() == (0, 0)
    both = {"v": views(at_most=1), "w": views(at_most=1)}
    each = wpinq.sql("SELECT COUNT(*) FROM v JOIN w USING (user)", both, epsilon=1, loss=1).loss
    assert [one.epsilon for one in each.measurements] == [0.5, 0.5], "each bound is told of, and paid by its table"


def test_it_is_charged_with_the_query_or_not_at_all():
    v = views(budget=1, at_most=20)
    with pytest.raises(wpinq.BudgetError):
        wpinq.sql(QUERY, {"v": v}, epsilon=1, loss="0.1", keys=["p1"])
    assert v._node.data.ledger.spent() == (0, 0)


@deep
def test_intervals_hold_what_is_hidden():
    """Noise of a total and of many groups: 40 questions at 95% each; 8 failures have a probability of 5e-4 at most
    for one number, were intervals no wider than they need be, and the secret is fixed."""
    failures = [0, 0, 0]
    v = views(at_most=20)
    for turn in range(40):
        answer = wpinq.sql(QUERY, {"v": v}, epsilon=8, delta="1e-3", loss=4, name=str(turn))
        shown = [page for page, _ in answer]
        kept = wpinq.sql(QUERY, {"v": v}, epsilon=LOUD // 40, keys=shown, name="exact") if turn == 0 else None
        truth = [50, 2000, None if kept is None else 1000 - sum(n for _, n in kept)]
        for place, ((_, ends), true) in enumerate(zip(answer.loss.intervals, truth, strict=True)):
            failures[place] += true is not None and not ends[0] - 1 <= true <= ends[1] + 1
    assert max(failures) < 8


def test_the_command_prints_and_writes_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.csv").write_text("user,page\n" + "".join(f"{user},{page}\n" for user, page in ROWS))
    ask = ["sql", QUERY, "--from", "v=v.csv", "--unit", "user", "--at-most", "20", "--epsilon", "100"]
    ask += ["--delta", "1e-6", "--show-loss", "100"]
    assert main([*ask, "--explain"]) == 0
    assert sum(float(line.split()[-3]) for line in capsys.readouterr().out.splitlines()[2:5]) == 200
    assert main([*ask, "--json", "o.json"]) == 0
    out = capsys.readouterr().out
    assert "Cost: epsilon 100, and epsilon 100 for what is left out, delta 1e-06. Epsilon 0 of 200 is left" in out
    assert "Left out, with probability 95% each, for epsilon 100: people " in out
    assert "(records beyond 200 that one user lost are not in it)" in out, "its numbers are not of all that was lost"
    assert "in groups that are not shown" in out
    assert "Epsilon 0 of 200 is left" in out
    assert [row[0] for row in json.loads((tmp_path / "o.json").read_text())["loss"]["rows"]][:2] == [
        "people",
        "records",
    ]
    assert Fraction(str(json.loads((tmp_path / "o.json").read_text())["loss"]["cost"]["epsilon"])) == 100
