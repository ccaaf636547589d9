"""A release file as a task of Airflow, run by Airflow; tried by .ci/tools, which makes the data base that it needs."""

import datetime as dt
import os
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("airflow") is None or "AIRFLOW_HOME" not in os.environ:
    pytest.skip("Airflow and its data base are not here; .ci/tools tries it", allow_module_level=True)
pytestmark = pytest.mark.filterwarnings("default")  # Airflow has its own

FILE = """
[data]
source = "{date}.csv"
ledger = "ledger"
unit = { column = "user", at_most = 2 }
[budget]
epsilon = 1
[period]
zone = "Europe/Amsterdam"
[[question]]
name = "views"
counts = ["page"]
keys = ["/a"]
epsilon = "1/2"
plot = false
[[sink]]
directory = "out/{date}"
"""
PLAIN = """
from airflow.sdk import DAG
from wpinq.tools.airflow import PublishOperator

with DAG("{}", schedule="@daily") as dag:
    PublishOperator(task_id="site", release="site.toml", openlineage=False, {})
"""
MARKER = "secret record"


@pytest.fixture
def place(tmp_path, monkeypatch, events):
    for day in range(24, 28):
        (tmp_path / f"2026-10-{day}.csv").write_text("user,page\nann,/a\n")
    (tmp_path / "site.toml").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(name, text):
    """A DAG that Airflow finds where it looks for them."""
    path = Path(os.environ["AIRFLOW_HOME"], "dags", f"{name}.py")
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    names = {}
    exec(text, names)
    return names["dag"]


def run(dag, day):
    """How a run ended, and what its task returned."""
    done = dag.test(logical_date=dt.datetime(2026, 10, day, tzinfo=dt.UTC))
    (task,) = done.get_task_instances()
    return done.state.value, task.xcom_pull(task_ids=task.task_id)


def test_the_block_of_the_page_publishes_once_and_emits_the_charge(place, block, events):
    dag = made("site", block("Airflow"))
    state, told = run(dag, 25)
    paid = {"epsilon": 0.5, "epsilon left": 0.5, "epsilon in all": 1.0}
    assert state == "success" and told == {"period": "2026-10-24", "done": "published", **paid}
    assert (place / "out" / "2026-10-24" / "views.csv").exists()
    state, told = run(dag, 25)
    assert (told["done"], told["epsilon left"]) == ("was published before", 0.5)
    assert [one["eventType"] for one in events()] == ["START", "COMPLETE"] * 2
    assert events()[1]["run"]["facets"]["wpinq_charge"]["left"] == 0.5


def test_a_refusal_fails_the_task_in_one_sentence(place, capfd):
    dag = made("refused", PLAIN.format("refused", 'period="{{ ds }}", retries=2'))
    assert [run(dag, day)[0] for day in (24, 25)] == ["success", "success"]
    capfd.readouterr()
    state, told = run(dag, 26)
    assert (state, told) == ("failed", None) and "nothing was charged" in "".join(capfd.readouterr())
    assert not (place / "events").exists()


def test_what_a_library_says_of_a_record_is_not_logged(place, monkeypatch, capfd):
    """Airflow keeps tracebacks, with what errors were raised from."""

    def fail(*_, **__):
        raise RuntimeError(MARKER) from ValueError(MARKER)

    dag = made("failed", PLAIN.format("failed", ""))
    monkeypatch.setattr("wpinq.apps.publish.release.Publisher.run", fail)
    assert run(dag, 25)[0] == "failed"
    text = "".join(capfd.readouterr())
    assert "RuntimeError" in text and MARKER not in text
