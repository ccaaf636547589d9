"""`wpinq try`: a dataflow on made-up records, before anything is charged."""

import pytest

from wpinq.apps.cli import main
from wpinq.testing import evaluate, made_up, protected

SCRIPT = """
def dataflow(views):
    pages = views.map(lambda page: page)
    none = pages.filter(lambda page: page == "nowhere")
    return {"pages": pages.measure(1), "none": none.map(lambda page: page.upper()).measure(1)}
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flow.py").write_text(SCRIPT)
    (tmp_path / "views.csv").write_text("user,page\nSECRET,nowhere\n" * 9)
    return tmp_path


def test_a_dataflow_is_tried_on_made_up_records_and_nothing_is_read_or_charged(script, capsys):
    for arguments in ([], ["views.csv"], ["views.csv", "--unit", "user", "--at-most", "3"]):
        assert main(["try", "flow.py", *arguments]) == 0
        told = capsys.readouterr().out
        assert "page 1" in told
        assert "nothing: no record comes through filter(" in told
        assert "wpinq check" in told
        assert "SECRET" not in told
    assert sorted(one.name for one in script.iterdir()) == ["flow.py", "views.csv"]


def test_records_of_your_own_that_are_not_there_are_named(script, capsys):
    """It said that the system refused, and not what."""
    for rows, why in (("few.csv", "few.csv: no such file"), ("nowhere/few.csv", "no such file")):
        assert main(["try", "flow.py", "views.csv", "--rows", rows]) == 2
        assert why in capsys.readouterr().err


def test_records_of_your_own_are_taken_and_the_protected_ones_are_not(script, capsys):
    (script / "few.csv").write_text("user,page\nann,nowhere\nbob,home\n")
    assert main(["try", "flow.py", "views.csv", "--rows", "few.csv"]) == 0
    told = capsys.readouterr().out
    assert "NOWHERE  1" in told
    assert "2 records (of your own)" in told
    assert main(["try", "flow.py", "views.csv", "--rows", "views.csv"]) == 2
    assert "protected records" in capsys.readouterr().err


def test_a_misspelt_method_is_told(script, capsys):
    (script / "flow.py").write_text(SCRIPT.replace("page.upper()", "page.uper()"))
    assert main(["try", "flow.py", "views.csv"]) == 2
    assert "Did you mean 'upper'?" in capsys.readouterr().err


def test_made_up_records_have_values_of_every_type():
    kinds = {"a": "text", "b": int, "c": float, "d": bool, "e": bytes, "f": "date", "g": "timestamp", "h": "instant",
             "i": "duration", "j": None}  # fmt: skip
    some = protected(**kinds)
    records = made_up(some, 30)
    assert sum(evaluate(some, records).values()) == 30
    assert records == made_up(some, 30)
    assert 1 < len({record[0] for record in records}) < 30
