"""`wpinq ledger`: show, export, verify, raise, cap."""

from __future__ import annotations

import csv
import io
import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pytest

import wpinq
from wpinq.apps.cli import main
from wpinq.core.ledger import Ledger

Open = Callable[..., Ledger]
Spend = Callable[..., bool]


class Result(NamedTuple):
    exit_code: int
    output: str


def run(*words: object) -> Result:
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said), patch.dict(os.environ, COLUMNS="200"):
        return Result(main(["ledger", *map(str, words)]), said.getvalue())


@pytest.fixture
def full(opened: Open, spend: Spend, place: Path) -> Path:
    ledger = opened()
    spend(ledger, 1, "1/3", label="page views", analyst="ada")
    spend(ledger, 2, "0.1", label="[red]degrees")
    ledger.seal("00000001", "1", b"digest")
    return place


def test_show_tells_what_was_spent_on_what_by_whom_and_what_is_left(full: Path) -> None:
    done = run("show", full)
    assert done.exit_code == 0
    for text in ("views, unit: record", "page views", "[red]degrees", "ada", "1/3", "0.1"):
        assert text in done.output
    assert "seal" not in done.output
    assert "seal" in run("show", full, "--all").output
    assert "Spent epsilon 13/30 of 1; 17/30 is left." in done.output


def test_show_as_json_is_exact(full: Path) -> None:
    report = json.loads(run("show", full, "--json").output)
    assert (report["spent"], report["remaining"], report["budget"]) == ("13/30", "17/30", "1/1")
    assert [entry["epsilon"] for entry in report["entries"]] == ["1/1", "1/3", "1/10", None]


def test_export_writes_json_or_csv(full: Path, tmp_path: Path) -> None:
    assert run("export", full, "--json", tmp_path / "out.json").exit_code == 0
    assert run("export", full, "--csv", tmp_path / "out.csv").exit_code == 0
    report = json.loads((tmp_path / "out.json").read_text())
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["label"] for row in rows] == [entry["label"] for entry in report["entries"]]
    assert rows[1]["epsilon"] == "1/3"
    done = run("export", full, "--csv", tmp_path / "none" / "out.csv")
    assert (done.exit_code, done.output.count("\n")) == (2, 1)


def test_export_prints_where_no_file_is_given(full: Path, tmp_path: Path) -> None:
    assert json.loads(run("export", full).output) == json.loads(run("export", full, "--json", "-").output)
    rows = list(csv.DictReader(io.StringIO(run("export", full, "--csv", "-").output)))
    assert [row["label"] for row in rows][1] == "page views"
    assert not Path("-").exists()


@pytest.mark.parametrize("end", ["", ".secret", ".head", ".lock"])
def test_export_never_replaces_the_ledger(full: Path, end: str) -> None:
    held = {path: path.read_bytes() for path in full.parent.iterdir()}
    for option in ("--json", "--csv"):
        done = run("export", full, option, f"{full}{end}")
        assert (done.exit_code, done.output.count("\n")) == (2, 1)
        assert "would replace" in done.output
    assert {path: path.read_bytes() for path in full.parent.iterdir()} == held
    assert run("verify", full).exit_code == 0


def test_rule_03_nothing_shown_or_exported_is_a_digest(full: Path, tmp_path: Path) -> None:
    connection = sqlite3.connect(full)
    bodies = [json.loads(body) for (body,) in connection.execute("SELECT body FROM entries")]
    connection.close()
    codes = [body["mac"] for body in bodies if body["kind"] == "seal"]
    assert codes
    run("export", full, "--csv", tmp_path / "out.csv")
    shown = run("show", full).output + run("show", full, "--json").output + (tmp_path / "out.csv").read_text()
    assert not any(code[:16] in shown for code in codes)


def test_verify_recomputes(full: Path) -> None:
    done = run("verify", full)
    assert done.exit_code == 0
    assert "4 rows, all intact" in done.output
    report = json.loads(run("verify", full, "--json").output)
    assert (report["intact"], report["rows"], report["spent"], report["remaining"]) == (True, 4, "13/30", "17/30")
    connection = sqlite3.connect(full, isolation_level=None)
    connection.execute("UPDATE entries SET body = replace(body, '1/3', '1/9')")
    connection.close()
    done = run("verify", full)
    assert done.exit_code == 2
    assert "edited or damaged" in done.output
    assert done.output.count("\n") == 1


def test_raise_and_cap(full: Path, opened: Open) -> None:
    assert run("raise", full, "3/2").exit_code == 0
    assert opened(budget=None).budget == Fraction(3, 2)
    assert run("cap", full, "ada", "0.5").exit_code == 0
    assert opened(budget=None).entries()[-1].analyst == "ada"
    for words in (("raise", full, "1"), ("raise", full, "nan"), ("cap", full, "ada", "9"), ("raise", full, "many")):
        done = run(*words)
        assert (done.exit_code, done.output.count("\n")) == (2, 1)
    assert opened(budget=None).budget == Fraction(3, 2)


def test_a_missing_ledger_is_one_clear_line_and_makes_nothing(tmp_path: Path) -> None:
    for command in ("show", "verify"):
        done = run(command, tmp_path / "none.ledger")
        assert done.exit_code == 2
        assert done.output.startswith("wpinq: ledger ")
        assert done.output.count("\n") == 1
        assert "there is none; check the path" in done.output
        assert "budget" not in done.output
    assert not any(tmp_path.iterdir())


def test_a_data_file_in_the_ledgers_place_is_told_from_its_ledger(full: Path) -> None:
    data = full.with_suffix("")
    data.write_text("user,page\nann,home\n")
    held = sorted(full.parent.iterdir())
    assert f"the ledger of {data.name} is {full}" in run("show", data).output
    alone = full.with_name("other.csv")
    alone.write_text("")
    assert "there is none; check the path" in run("verify", alone).output
    alone.unlink()
    assert sorted(full.parent.iterdir()) == held


def test_commands_charge_the_analyst_that_they_are_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, ledger = tmp_path / "views.csv", tmp_path / "ledger"
    file.write_text("user,page\n" + "ann,home\n" * 50)
    wpinq.protect(file, budget=1, ledger=ledger)
    query = ["sql", "SELECT COUNT(*) AS c, SUM(1) AS s FROM views", "--from", f"views={file}", "--bounds", "1=0..1"]
    degrees = ["degrees", str(file), "--of", "page", "--budget", "0.2", "--ledger", str(ledger)]
    assert main(["ledger", "cap", str(ledger), "ada", "0.3"]) == 0
    assert main([*query, "--epsilon", "0.2", "--ledger", str(ledger), "--analyst", "ada"]) == 0
    assert main([*degrees, "--analyst", "ada"]) == 2
    assert "cap of analyst 'ada'" in capsys.readouterr().err
    assert main([*degrees, "--analyst", "bob"]) == 0
    charged = [entry.analyst for entry in Ledger.existing(ledger).entries() if entry.kind == "charge"]
    assert charged == ["ada", "ada", "bob"]
