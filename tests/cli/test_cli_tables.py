"""`wpinq sql` over several tables of the same people: files of any form, one ledger, what a person loses by all."""

import json
import shutil
import subprocess
from collections import Counter
from fractions import Fraction

import pytest

import wpinq
from wpinq.apps.cli.show import budget_line
from wpinq.core.ledger import Ledger

LOUD = 20_000  # noise that is zero but for a chance of exp(-100)
VISITS = [(f"u{i % 400}", f"c{i % 5}", i % 28) for i in range(9000)]
PEOPLE = [(f"u{i}", "north" if i % 3 else "south", i % 90) for i in range(0, 300)]
QUERY = (
    "SELECT town, kind, COUNT(*) AS n FROM visits JOIN people USING (user) JOIN clinics USING (clinic) "
    "WHERE age >= 10 GROUP BY town, kind ORDER BY town, kind"
)
UNIT = ["--unit", "user", "--at-most", "visits:30", "--at-most", "people:1"]
FORMS = [
    "--separator",
    "visits:;",
    "--columns",
    "people:user,town,age:int",
    "--columns",
    "clinics:clinic:text,kind:text",
]


@pytest.fixture
def ask(wpinq, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{user};{clinic};{day}\n" for user, clinic, day in VISITS)
    (tmp_path / "visits.csv").write_text(f"user;clinic;day\n{rows}")
    rows = "".join(f"{user},{town},{age}\n" for user, town, age in PEOPLE)
    (tmp_path / "people.csv").write_text(f"user,town,age\n{rows}")
    kinds = ({"clinic": f"c{i}", "kind": "ab"[i % 2]} for i in range(5))
    (tmp_path / "clinics.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in kinds))
    files = ["--from", "visits=visits.csv", "--from", "people=people.csv", "--public", "clinics=clinics.jsonl"]
    return lambda query, *more: wpinq("sql", query, *files, *FORMS, *more)


def test_tables_of_the_same_people_are_one_ledger_and_one_price(ask, wpinq, tmp_path):
    common = [*UNIT, "--epsilon", str(LOUD), "--delta", "1e-6", "--budget", str(3 * LOUD), "--ledger", "L"]
    done = ask(QUERY, *common, "--json", "out.json")
    assert done.code == 0, done.err
    known = {user: town for user, town, age in PEOPLE if age >= 10}
    truth = Counter((known[user], "ab"[int(clinic[1]) % 2]) for user, clinic, _ in VISITS if user in known)
    content = json.loads((tmp_path / "out.json").read_text())
    assert [tuple(row) for row in content["rows"]] == [(*key, n) for key, n in sorted(truth.items())]
    assert "at most 30 records each in visits and one user, at most 1 record each in people." in done.out
    assert content["cost"] == {"epsilon": LOUD, "delta": 1e-6}
    assert (
        f"Cost: epsilon {LOUD}, delta 1e-06. Epsilon {2 * LOUD} of {3 * LOUD} is left for people and visits."
        in done.out
    )
    assert Ledger.existing(tmp_path / "L").spent() == (LOUD, Fraction(1, 10**6)), "what a person in both loses"
    assert ask(QUERY, *common).out.count("nothing was charged now") == 1
    alone = wpinq("sql", "SELECT COUNT(*) AS n FROM people", "--from", "people=people.csv", "--unit", "user",
                  "--at-most", "1", "--ledger", "L", "--epsilon", "100")  # fmt: skip
    assert (alone.code, alone.out.splitlines()[1]) == (0, "300 ± 0"), "the ledger knows its tables by name"


def test_ledgers_apart_and_what_explain_says(ask, tmp_path):
    common = [*UNIT, "--epsilon", "1", "--delta", "1e-6"]
    assert "noise of scale 30" in ask(QUERY, *common, "--explain").out
    together = ask(QUERY, *common, "--explain", "--ledger", "L").out
    assert "noise of scale 30" in together, "both move the pairs of one person"
    assert "data set 'people': epsilon 0.5" in together
    assert "one person in all of a ledger: epsilon 1" in together
    assert not list(tmp_path.glob("*ledger*")) and not (tmp_path / "L").exists()
    said = ask(QUERY, *common).out
    assert "Cost: epsilon 1, delta 1e-06 in each of 2 ledgers at the most, and their sum for who is in all." in said
    assert {name: Ledger.existing(tmp_path / f"{name}.csv.ledger").spent()[0] for name in ("visits", "people")} == {
        "visits": 1, "people": 1,
    }  # fmt: skip


def test_what_each_bound_leaves_out_is_told_and_paid(ask, tmp_path):
    unit = ["--unit", "user", "--at-most", "visits:10", "--at-most", "people:1"]
    done = ask(QUERY, *unit, "--epsilon", "1", "--show-loss", str(90_000), "--delta", "1e-6", "--ledger", "L", "--json",
               "out.json")  # fmt: skip
    assert done.code == 0, done.err
    loss = json.loads((tmp_path / "out.json").read_text())["loss"]
    lost = sum(max(count - 10, 0) for count in Counter(user for user, *_ in VISITS).values())
    told = dict(loss["rows"])
    assert [told[f"{what} of {name}"] for name in ("visits", "people") for what in ("people", "records")] == [
        400, lost, 0, 0,
    ]  # fmt: skip
    assert loss["cost"] == {"epsilon": 90_000, "delta": 0}
    assert Ledger.existing(tmp_path / "L").spent()[0] == 90_001
    assert f"records of visits {lost:,}" in done.out


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--at-most", "2", "--at-most", "3"], "--at-most: is given twice; give one for each table, --at-most visits:"),
        (["--at-most", "visits:x"], "--at-most x: write a number of records, or auto, or TABLE:NUMBER"),
        (["--at-most", "2", "--where", "clinics:kind = 'a'"], "--where clinics: it is a public table"),
        (["--at-most", "2", "--shared"], "give either --at-most N"),
        (["--at-most", "2", "--from", "people=visits.csv"], "two tables have one name"),
        (["--at-most", "2", "--from", "more=people.csv"], "--from more: the query does not read it"),
        (["--at-most", "2", "--from", "more"], "write NAME=SOURCE"),
    ],
)
def test_what_does_not_fit_is_refused(ask, tmp_path, more, why):
    assert why in ask(QUERY, "--unit", "user", *more, "--epsilon", "1", "--delta", "1e-6", "--ledger", "L").refused()
    assert not (tmp_path / "L").exists()


def test_a_ledger_of_one_table_is_no_new_ledger_of_that_name(ask, tmp_path):
    """Other options are of one table as TABLE:VALUE; a ledger called visits:L would be a new budget."""
    done = ask(QUERY, *UNIT, "--epsilon", "1", "--delta", "1e-6", "--ledger", "visits:L")
    assert "one ledger is of all tables" in done.refused()
    assert not list(tmp_path.glob("*L*"))


def test_a_ledger_that_cannot_be_written_is_refused_whole_for_what_it_is(ask, tmp_path):
    """Its budget is another than what is spent, and nobody gave one."""
    common = [*UNIT, "--delta", "1e-6"]
    assert ask(QUERY, *common, "--epsilon", "1", "--budget", "5").code == 0
    path = tmp_path / "people.csv.ledger"
    if (
        not shutil.which("chattr")
        or subprocess.run(["chattr", "+i", path], capture_output=True, check=False).returncode
    ):
        pytest.skip("this file system has no immutable files, and modes do not bind every user")
    try:
        assert "people.csv.ledger: it cannot be written" in ask(QUERY, *common, "--epsilon", "2").refused()
    finally:
        subprocess.run(["chattr", "-i", path], check=True)
    assert [Ledger.existing(tmp_path / f"{name}.csv.ledger").spent()[0] for name in ("visits", "people")] == [1, 1]


def test_each_table_has_steps_and_a_unit_of_its_own(ask):
    query = "SELECT COUNT(*) AS n FROM visits JOIN people USING (user) JOIN clinics USING (clinic)"
    done = ask(query, "--unit", "user", "--shared", "--at-most", "people:1", "--where", "people:age::int >= 10",
               "--derive", "visits:clinic=lower(clinic)", "--epsilon", "2000")  # fmt: skip
    assert done.code == 0, done.err
    people = sum(age >= 10 for *_, age in PEOPLE)
    told = float(done.out.splitlines()[1].split()[0])
    assert told == pytest.approx(people, abs=0.5), "a person's visits share a weight of 1"


def test_python_asks_tables_of_one_ledger_at_the_same_price(tmp_path):
    unit = {"visits": wpinq.users("user", at_most=20), "people": wpinq.users("user", at_most=1)}
    kinds = {"visits": ("user", "clinic", "day"), "people": ("user", "town", "age")}
    tables = {
        name: wpinq.protect(rows, 9, columns=dict.fromkeys(kinds[name], "text"), unit=unit[name], name=name,
                            ledger=tmp_path / "L", version="1")
        for name, rows in (("visits", ()), ("people", ()))
    }  # fmt: skip
    answer = wpinq.sql("SELECT COUNT(*) FROM visits JOIN people USING (user)", tables, epsilon=1)
    assert (answer.cost["epsilon"], Ledger.existing(tmp_path / "L").spent()[0]) == (1, 1)
    count = tables["visits"].join_rows(tables["people"], on="user").count(epsilon=1)
    assert (count.cost["epsilon"], Ledger.existing(tmp_path / "L").spent()[0]) == (2, 3), "each table pays 1"


def test_of_many_tables_three_are_named(tmp_path):
    for day in range(5):
        rows = wpinq.protect([("a",)], columns=("page",), budget=1, ledger=tmp_path / "days", name=f"day {day}")
    assert rows.left == 1
    line = budget_line(Ledger.existing(tmp_path / "days"))
    assert line == "Epsilon 1 of 1 is left for day 0 and day 1 and day 2 and 2 more."
