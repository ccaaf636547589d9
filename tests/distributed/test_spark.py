"""Plans on Spark: the histograms and the ledger of one process. Where there is no PySpark, `.ci/spark` runs it."""

import datetime as dt
import sys
from decimal import Decimal
from importlib.util import find_spec

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed.test_processes import content, measured, protected, rows
from distributed.test_spark_tables import RECORDS, entries, table
from distributed.test_spark_tables import protected as declared

import wpinq
from wpinq.distributed.spark import labels

pytest.importorskip("pyspark", reason="PySpark is not installed; .ci/spark has an environment for it")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # PySpark's own warnings
LINES = "".join(f"{user},{page}\n" for user, page in RECORDS)
WITHOUT_CONNECT = "there is no Spark Connect here: PySpark 4 with its extra connect"


@pytest.fixture(scope="module", params=["classic", "connect"])
def session(request):
    """A session of two cores in this process, and one of Spark Connect, whose server is started for it."""
    import pyspark
    from pyspark.sql import SparkSession

    connect = request.param == "connect"
    if connect and (pyspark.__version__ < "4" or not find_spec("grpc_status")):
        pytest.skip(WITHOUT_CONNECT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)  # else executors run the first python3 of PATH
        builder = SparkSession.builder.remote("local[2]") if connect else SparkSession.builder.master("local[2]")
        made = builder.config("spark.ui.enabled", "false").getOrCreate()
        assert ("connect" in type(made).__module__) is connect
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


def test_all_tasks_of_a_step_run_at_once_those_of_the_last_too(place, session):
    if "connect" in type(session).__module__:
        pytest.skip("its client does not see stages")
    tracker, parts = session.sparkContext.statusTracker(), 7
    before = set(tracker.getJobIdsForGroup(None))
    views = protected(place, unit=wpinq.users("user", at_most=20), engine=wpinq.spark(session, parts=parts))
    content([views.map("page").measure("0.1")])
    jobs = [tracker.getJobInfo(job) for job in set(tracker.getJobIdsForGroup(None)) - before]
    stages = [tracker.getStageInfo(stage) for stage in {stage for job in jobs for stage in job.stageIds}]
    assert sum(stage.numCompletedTasks == parts for stage in stages if stage) == 2  # they read, and they fold


@pytest.mark.parametrize("parts", [2, 24])
def test_spark_deals_each_part_to_a_partition_of_its_own(session, parts):
    chosen = labels(session, parts)
    rows = session.createDataFrame([(label,) for label in chosen], "part int").repartition(parts, "part")
    partitions = rows.selectExpr("part", "spark_partition_id() AS partition").collect()
    dealt = {row["part"]: row["partition"] for row in partitions}
    assert [dealt[label] for label in chosen] == list(range(parts))


def test_a_dataframe_counts_as_its_rows_do_in_one_process_and_the_ledger_is_the_same(tmp_path, session):
    alone = content(measured(declared(tmp_path, table(RECORDS))))
    ledger = entries(tmp_path)
    views = session.createDataFrame(RECORDS, "user string, page string").repartition(3)
    assert content(measured(declared(tmp_path, views, engine=wpinq.spark(session, parts=2)))) == alone
    assert entries(tmp_path) == ledger


TYPED = {
    "text": ["a", None, "\u00e9", ""],
    "whole": pa.array([1, -(2**31), None, 7], pa.int32()),
    "number": [0.5, -0.0, None, float("nan")],
    "price": pa.array([Decimal("1.10"), None, Decimal("-2.00"), Decimal("0.01")], pa.decimal128(10, 2)),
    "day": [dt.date(2026, 11, 24), None, dt.date(1950, 1, 1), dt.date(9999, 12, 31)],
    "when": pa.array([0, None, 1_764_000_000_123_456, -1], pa.timestamp("us", "UTC")),
    "clock": pa.array([0, None, 1_764_000_000_123_456, -1], pa.timestamp("us")),
    "code": [b"\x00", None, b"\xff", b""],
    "yes": [True, False, None, True],
    "list": [[1, 2], None, [], [None]],
    "pair": pa.array([{"x": 1, "y": "b"}, None, {"x": None, "y": ""}, {"x": 2, "y": "b"}],
                     pa.struct([("x", pa.int32()), ("y", pa.string())])),
}  # fmt: skip


def test_columns_of_every_type_are_those_of_the_file_that_spark_reads(tmp_path, session):
    file = tmp_path / "typed.parquet"
    pq.write_table(pa.table(TYPED), file)
    one = declared(tmp_path, file, unit=None)
    other = declared(tmp_path, session.read.parquet(str(file)), unit=None, engine=wpinq.spark(session, parts=2))
    assert str(one) == str(other)
    assert content([one.measure("0.1")]) == content([other.measure("0.1")])


def test_a_dataframe_that_draws_rows_or_is_of_another_version_is_refused(tmp_path, session):
    engine = wpinq.spark(session)
    views = session.createDataFrame(RECORDS, "user string, page string")
    declared(tmp_path, views, engine=engine).map("page").measure("0.1")
    with pytest.raises(wpinq.ChangedError):
        declared(tmp_path, views.where("user <> 'u3'"), engine=engine)
    with pytest.raises(wpinq.WpinqError) as refused:  # Connect cannot tell before it was read twice
        drawn = declared(tmp_path, views.selectExpr("user", "uuid() AS page"), engine=engine, version="drawn")
        drawn.map("page").measure("0.1").observe("p1")
    assert isinstance(refused.value, wpinq.SourceError | wpinq.EngineError)


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

    monkeypatch.setattr(own, "plans_to_json", lambda roots: {"data": [], "steps": [{"is": "secret name"}], "roots": []})
    with pytest.raises(wpinq.EngineError) as failed:
        one.observe("p1")
    assert "secret" not in str(failed.value)


def test_executors_without_wpinq_are_refused_before_anything_is_charged(place, session, monkeypatch):
    if "connect" in type(session).__module__:
        pytest.skip("the server of Spark Connect has its own environment")
    monkeypatch.setattr(session.sparkContext, "pythonExec", "/usr/bin/false")
    views = protected(place, engine=wpinq.spark(session))
    with pytest.raises(wpinq.PlanError, match="PYSPARK_PYTHON"):
        views.map("page").measure("0.1").observe("p1")
    assert views.budget.spent == 0
