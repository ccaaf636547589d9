"""DataFrames of Spark, read over a pretended Spark that loses what it keeps; `test_spark.py` has the real one."""

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from depth import thin
from distributed.pretended import Session
from distributed.test_processes import LINES, content, measured

import wpinq
from wpinq.core.ledger import Ledger
from wpinq.core.state.workers import THREADS
from wpinq.sources.tables import spark as own

RECORDS = [tuple(line.split(",")) for line in LINES.splitlines()]
PERSON = wpinq.users("user", at_most=20)


@pytest.fixture(autouse=True)
def _types_and_extra(monkeypatch):
    monkeypatch.setattr(own, "_type", lambda kind, pa: kind)
    monkeypatch.setitem(wpinq.errors.EXTRAS, "spark", ("polars",))
    monkeypatch.setenv(THREADS, "1")  # as tasks set it, in whose process only tasks run


def table(records):
    return pa.table({"user": [user for user, _ in records], "page": [page for _, page in records]})


def protected(place, source, **more):
    how = {"unit": PERSON, "version": "views at 42", "name": "views", "ledger": place / "ledger", "budget": 9}
    return wpinq.protect(source, **how | more)


def entries(place):
    return [(one.kind, one.question) for one in Ledger.existing(place / "ledger").entries()]


def shuffled(seed, parts=3):
    """The records in another order and other parts, of which one is empty."""
    records = RECORDS[:]
    random.Random(seed).shuffle(records)
    cuts = sorted(random.Random(seed).randrange(len(records)) for _ in range(parts - 1))
    pieces = [records[a:b] for a, b in zip([0, *cuts], [*cuts, len(records)], strict=True)]
    return [*map(table, pieces), table([])]


@pytest.fixture
def alone(tmp_path):
    """What one process counts of the same rows as a table of Arrow, and its ledger."""
    return content(measured(protected(tmp_path, table(RECORDS)))), entries(tmp_path)


@thin(2)
@pytest.mark.parametrize("parts", [1, 5])
def test_a_dataframe_counts_as_its_rows_do_in_one_process_and_the_ledger_is_the_same(tmp_path, alone, parts):
    found, ledger = alone
    session = Session()
    engine = wpinq.spark(session, parts=parts)
    assert content(measured(protected(tmp_path, session.table(*shuffled(parts)), engine=engine))) == found
    assert entries(tmp_path) == ledger, "nothing is charged or sealed anew"


def test_a_dataframe_counts_as_a_parquet_file_does(tmp_path, alone):
    pq.write_table(table(RECORDS), tmp_path / "views.parquet")
    assert content(measured(protected(tmp_path, tmp_path / "views.parquet"))) == alone[0]


def test_without_an_engine_its_rows_come_to_this_process(tmp_path, alone):
    found, ledger = alone
    assert content(measured(protected(tmp_path, Session().table(*shuffled(1))))) == found
    assert entries(tmp_path) == ledger


def test_records_of_one_measured_column_need_no_other_task(tmp_path):
    session = Session()
    engine = wpinq.spark(session)
    views = protected(tmp_path, session.table(*shuffled(2)), unit=None, engine=engine)
    assert content([views.map("page").measure("0.1")]) == content(
        [protected(tmp_path, table(RECORDS), unit=None).map("page").measure("0.1")]
    )
    assert engine._at_once == 2, "into so many parts the session cuts its numbers"


def test_parts_that_are_lost_and_read_again_change_nothing(tmp_path, alone):
    found, ledger = alone
    chance = random.Random(3)
    session = Session(loses=lambda frame, part: chance.random() < 0.3)
    engine = wpinq.spark(session, parts=3)
    order = random.Random(4)

    def again(one):
        rows = one.to_pylist()
        return lambda: table([(row["user"], row["page"]) for row in order.sample(rows, len(rows))])

    parts = [again(one) for one in shuffled(4)]
    assert content(measured(protected(tmp_path, session.table(*parts), engine=engine))) == found
    assert entries(tmp_path) == ledger


class Changing:
    """A part whose rows are others once it was read so often."""

    def __init__(self, before, after, reads):
        self.before, self.after, self.left = before, after, reads

    def __call__(self):
        self.left -= 1
        return self.after if self.left < 0 else self.before


def asked(views):
    return [views.map("page").measure("0.1"), views.join(views, on="user").map("page").measure("0.1")]


@thin(3)
@pytest.mark.parametrize("reads", [0, 1, 2, 3, 5, 9])
@pytest.mark.parametrize("lost", [lambda frame, part: True, lambda frame, part: frame == 1 and part == 0])
def test_what_an_executor_reads_again_and_finds_changed_is_answered_never(tmp_path, reads, lost):
    """Another record comes in the place of one, once its part was read so often."""
    first, *rest = shuffled(5)
    other = table([("u1", "another page"), *((row["user"], row["page"]) for row in first.to_pylist()[1:])])
    session = Session(loses=lost)
    changing = Changing(first, other, 10**9)
    views = protected(tmp_path, session.table(changing, *rest), engine=wpinq.spark(session, parts=2))
    made = asked(views)
    spent = views.budget.spent
    changing.left = reads
    try:
        answered = content(made)
    except (wpinq.ChangedError, wpinq.EngineError) as refused:
        assert "page" not in str(refused)
    else:
        assert answered == content(asked(protected(tmp_path, table(RECORDS)))), "what was read late was not used"
    assert views.budget.spent == spent


@pytest.mark.parametrize("seed", [12, 20, 21])
def test_what_a_task_counted_and_the_sum_of_its_rows_come_of_one_run_of_it(tmp_path, seed):
    """The second part of what is handed over runs it again, and finds other rows; dealt by content, these are mixed."""
    first = table([(user, f"{page}-{seed}") for user, page in RECORDS[:40]])
    other = table([("u1", "another page"), *((row["user"], row["page"]) for row in first.to_pylist()[1:])])
    changing, session = Changing(first, other, 10**9), Session(loses=lambda frame, part: True)
    more = {"unit": None, "secret": wpinq.Secret(bytes(range(32)))}
    views = protected(tmp_path, session.table(changing), engine=wpinq.spark(session, parts=2), **more)
    made = [views.map("page").measure("0.1")]
    changing.left = 1
    try:
        answered = content(made)
    except (wpinq.ChangedError, wpinq.EngineError):
        return
    alone = protected(tmp_path, first, ledger=tmp_path / "alone", **more)
    assert answered == content([alone.map("page").measure("0.1")])


def test_rows_that_change_after_the_charge_are_refused_by_name(tmp_path):
    first, *rest = shuffled(6)
    session = Session()
    changing = Changing(first, first.slice(1), 10**9)
    views = protected(tmp_path, session.table(changing, *rest), engine=wpinq.spark(session))
    one = views.map("page").measure("0.1")
    changing.left = 0
    with pytest.raises(wpinq.ChangedError, match="views at 42"):
        one.observe("p1")
    changing.left = 10**9
    assert one.observe("p1") is not None


def test_other_rows_under_the_same_name_are_refused_before_they_are_charged(tmp_path):
    session = Session()
    engine = wpinq.spark(session)
    protected(tmp_path, session.table(table(RECORDS)), engine=engine).map("page").measure("0.1")
    with pytest.raises(wpinq.ChangedError):
        protected(tmp_path, session.table(table(RECORDS[1:])), engine=engine)
    spent = wpinq.budget(tmp_path / "ledger").spent
    other = protected(tmp_path, session.table(table(RECORDS[1:])), engine=engine, version="views at 43")
    other.map("page").measure("0.1")
    assert wpinq.budget(tmp_path / "ledger").spent == 2 * spent


def test_a_table_that_is_empty_when_it_is_read_again_is_refused(tmp_path):
    session = Session()
    changing = Changing(table(RECORDS), table([]), 10**9)
    views = protected(tmp_path, session.table(changing), engine=wpinq.spark(session))
    one = views.group_by("user", len).measure("0.1")
    changing.left = 0
    with pytest.raises(wpinq.ChangedError):
        one.observe(("u1", 1))


def test_it_needs_a_version_a_ledger_and_its_own_session(tmp_path):
    session, rows = Session(), table(RECORDS)
    with pytest.raises(wpinq.PlanError, match=r"protect\(version=...\): name the snapshot"):
        protected(tmp_path, session.table(rows), version=None)
    with pytest.raises(wpinq.PlanError, match="no file to keep a ledger by"):
        protected(tmp_path, session.table(rows), ledger=None)
    views = protected(tmp_path, session.table(rows), engine=wpinq.spark(Session()))
    with pytest.raises(wpinq.PlanError, match="of another session"):
        views.map("page").measure("0.1")
    assert views.budget.spent == 0
    with pytest.raises(wpinq.SourceError, match="from_utc_timestamp"):
        protected(tmp_path, session.table(rows), tz="Europe/Amsterdam")


def test_a_stream_and_rows_that_are_drawn_anew_are_refused(tmp_path):
    from types import SimpleNamespace

    session = Session()
    stream = session.table(table(RECORDS))
    stream.isStreaming = True
    with pytest.raises(wpinq.SourceError, match="it is a stream"):
        protected(tmp_path, stream)
    drawn = session.table(table(RECORDS))
    analyzed = SimpleNamespace(deterministic=lambda: False)
    drawn._jdf = SimpleNamespace(queryExecution=lambda: SimpleNamespace(analyzed=lambda: analyzed))
    with pytest.raises(wpinq.SourceError, match="other rows each time"):
        protected(tmp_path, drawn)


def test_a_failure_of_spark_quotes_nothing_and_charges_nothing(tmp_path):
    def broken():
        raise RuntimeError("u1 viewed home")

    session = Session()
    frame = session.table(table(RECORDS), Changing(table([]), table([]), 10**9))
    views = protected(tmp_path, frame, engine=wpinq.spark(session))
    frame.parts[1] = broken
    with pytest.raises(wpinq.SourceError, match="Spark could not read it") as failed:
        views.map("page").measure("0.1")
    assert "home" not in str(failed.value)
    assert views.budget.spent == 0
