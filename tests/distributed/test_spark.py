"""Plans on Spark: the histograms and the ledger of one process. Where there is no PySpark, `.ci/spark` runs it."""

import sys

import pytest
from distributed.test_processes import content, measured, protected, rows

import wpinq

pytest.importorskip("pyspark", reason="PySpark is not installed; .ci/spark has an environment for it")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # PySpark's own warnings
LINES = "".join(f"u{i % 97},p{i * i % 1009 % (i % 50 + 1)}\n" for i in range(4000))


@pytest.fixture(scope="module")
def session():
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)  # else executors run the first python3 of PATH
        made = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
        yield made
        made.stop()


@pytest.fixture
def place(tmp_path):
    (tmp_path / "views.csv").write_text("user,page\n" + LINES)
    return tmp_path


@pytest.mark.parametrize("unit", [None, wpinq.users("user", at_most=20)], ids=["records", "people"])
def test_spark_counts_the_same_and_the_ledger_is_the_same(place, session, unit):
    alone = content(measured(protected(place, unit=unit)))
    ledger = rows(place)
    assert content(measured(protected(place, unit=unit, engine=wpinq.spark(session, parts=3)))) == alone
    assert rows(place) == ledger


def test_what_executors_cannot_read_or_run_is_refused_before_it_is_charged(place, session):
    engine = wpinq.spark(session)
    views = wpinq.protect([("ann", "home")], budget=1, columns={"user": str, "page": str}, engine=engine)
    with pytest.raises(wpinq.PlanError, match="executors of Spark cannot read it"):
        views.map("page").measure("0.1")
    assert views.budget.spent == 0
    with pytest.raises(wpinq.PlanError, match="cannot be told to another process"):
        protected(place, engine=engine).map(lambda page: page or None).measure("0.1")


def test_a_failure_on_an_executor_quotes_nothing(place, session, monkeypatch):
    views = protected(place, engine=wpinq.spark(session, parts=2))
    one = views.map("page").measure("0.1")
    from wpinq.distributed import spark as own

    monkeypatch.setattr(own, "plans_told", lambda roots: {"data": [], "steps": [{"is": "secret name"}], "roots": []})
    with pytest.raises(wpinq.EngineError) as failed:
        one.observe("p1")
    assert "secret" not in str(failed.value)


def test_executors_without_wpinq_are_refused_before_anything_is_charged(place, session, monkeypatch):
    monkeypatch.setattr(session.sparkContext, "pythonExec", "/usr/bin/false")
    views = protected(place, engine=wpinq.spark(session))
    with pytest.raises(wpinq.PlanError, match="PYSPARK_PYTHON"):
        views.map("page").measure("0.1").observe("p1")
    assert views.budget.spent == 0
