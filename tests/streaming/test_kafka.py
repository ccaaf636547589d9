"""Topics of Kafka, from a broker that speaks its protocol over TCP: the one that librdkafka brings for tests."""

import datetime as dt
import time

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wpinq
from wpinq.core.records.schema import Column, Kind, Schema
from wpinq.sources.text.weblog import KINDS
from wpinq.streaming import kafka as room
from wpinq.streaming import messages
from wpinq.streaming.topic import from_url

confluent = pytest.importorskip("confluent_kafka", reason="wpinq[kafka] is not installed")
TYPED = {"user": "text", "page": "text"}
EXACT = 500
LINE = 'h - ann [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 -'


@pytest.fixture(scope="module")
def cluster():
    """A producer whose client hosts a broker; topics are made when they are first written."""
    producer = confluent.Producer({"test.mock.num.brokers": 1, "log_level": 0, "linger.ms": 0})
    brokers = [f"{one.host}:{one.port}" for one in producer.list_topics(timeout=10).brokers.values()]
    return producer, brokers


@pytest.fixture
def topic(cluster, request):
    """A topic of the test's own."""
    producer, brokers = cluster
    name = "".join(c for c in request.node.name if c.isalnum())[-100:]

    def write(*values, **more):
        for value in values:
            producer.produce(name, value, **more)
        assert producer.flush(10) == 0

    return brokers, name, write


@pytest.fixture
def views():
    source = wpinq.live(TYPED, budget=10**6)
    yield source
    source.close()


def json(user, page):
    return f'{{"user": "{user}", "page": "{page}"}}'


def test_what_has_come_since_the_last_look_is_counted_once(topic, views):
    brokers, name, write = topic
    m = views.map(lambda user: user).measure(EXACT, continual=True)
    write(*[json("ann", n) for n in range(2000)], "nonsense", None, '["ann"]', json("bob", 1))
    source = wpinq.kafka(brokers, name)
    for more, expected in ((0, [2000, 1]), (3, [2003, 1]), (0, [2003, 1]), (1, [2004, 1])):
        write(*[json("ann", n) for n in range(more)])
        views.follow(source)
        views.advance()
        assert m.observe_many(["ann", "bob"]).tolist() == expected


def test_a_restart_reads_on_from_where_the_last_closed_epoch_ended(topic, tmp_path):
    brokers, name, write = topic
    for expected in (5, 10, 15):
        write(*[json("ann", n) for n in range(5)])
        views = wpinq.live(TYPED, budget=10**6, ledger=tmp_path / "ledger", recover=tmp_path / "keep")
        m = views.map(lambda user: user).measure(EXACT, continual=True)
        views.follow(wpinq.kafka(brokers, name))
        views.advance()
        assert m.observe("ann") == expected
        write(json("eve", 1))
        views.follow(wpinq.kafka(brokers, name))
        views.close()
    assert m.observe("eve") == 2, "twice of three times it was not lost with the open epoch, but read again"


def test_partitions_that_are_all_the_same_are_all_read(topic, views):
    brokers, name, write = topic
    for partition in range(4):
        write(*[json("ann", 1)] * (partition + 1), partition=partition)
    views.follow(wpinq.kafka(brokers, name))
    (followed,) = views._followed.values()
    assert followed.positions() == {f"{n}-{name}": n + 1 for n in range(4)}


def test_the_time_of_a_producer_is_not_the_brokers(topic):
    brokers, name, write = topic
    views = wpinq.live({"user": "text", "at": "timestamp with time zone"}, budget=10**6)
    m = views.measure(EXACT)
    write(json("ann", 1), timestamp=1_000_000_000_000)
    views.follow(wpinq.kafka(brokers, name, arrived="at"))
    views.advance()
    when = dt.datetime.fromtimestamp(1_000_000_000, dt.UTC)
    assert m.observe_many([("ann", None), ("ann", when)]).tolist() == [1, 0]
    views.close()


ARRIVED = Schema((Column("user", Kind.TEXT), Column("n", Kind.INT)))
TIMES = pl.Series("at", [10**6, None, 3 * 10**6, 4 * 10**6], pl.Datetime("us", "UTC"))


def at(second):
    return dt.datetime.fromtimestamp(second, dt.UTC)


def test_messages_are_lines_of_a_declared_format():
    """Lines of another format than the combined one were all dropped."""
    lines = [b"1.1.1.1 200 /a 0.5", b"nonsense", b"1.1.1.2 404 /b 1.5"]
    read = messages.read_as("$remote_addr $status $uri $request_time")
    frame = read(pa.array(lines, pa.large_binary()), TIMES[: len(lines)], ARRIVED)
    assert frame.select("page", "request_time").rows() == [("/a", 0.5), ("/b", 1.5)]
    assert frame[TIMES.name].to_list() == [TIMES[0], TIMES[2]]
    read = messages.read_as("vhost_combined")
    line = b'h:80 1.1.1.1 - - [10/Oct/2000:13:55:36 -0700] "GET /p HTTP/1.0" 200 1 "-" "-"'
    assert read(pa.array([line], pa.large_binary()), None, ARRIVED)["page"].to_list() == ["/p"]


@pytest.mark.parametrize(
    ("form", "values"),
    [
        ("json", [b'{"user": "a", "n": 1}', b"[]", b'{"user": "b", "n": "2"}', b'{"user": "c", "n": 3.5}']),
        ("csv", [b"a,1", b'"a', b'"b",2', b"c,x\r\n"[:-1]]),
        ("tsv", [b"a\t1", b"too\tmany\tfields", b'"b"\t2', b"c\tx"]),
    ],
)
def test_a_record_keeps_its_time_of_arrival_when_others_are_dropped(form, values):
    frame = messages.read_as(form)(pa.array(values, pa.large_binary()), TIMES, ARRIVED)
    rows = sorted(frame.select("user", "n", "at").rows(), key=repr)
    assert rows == [("a", 1, at(1)), ("b", 2, at(3)), ("c", None, at(4))]


def test_web_logs_keep_their_times_too():
    values = pa.array([LINE.encode(), b"no", LINE.encode(), None], pa.large_binary())
    schema = Schema(tuple(Column(name, kind) for name, kind in KINDS.items()))
    frame = messages.read_as("log")(values, TIMES, schema)
    assert frame.select("page", "at").rows() == [("/a", at(1)), ("/a", at(3))]


message = st.one_of(
    st.binary(max_size=30), st.none(), st.sampled_from([b"a,1", b'{"user":"a","n":1}', b"a\t1", b'"', b"a\n"])
)


@given(st.sampled_from(["json", "csv", "tsv"]), st.lists(message, max_size=6))
def test_attack_35_no_message_changes_how_another_one_is_read(form, values):
    def read(some):
        return messages.read_as(form)(pa.array(some, pa.large_binary()), None, ARRIVED).select("user", "n").rows()

    assert sorted(read(values), key=repr) == sorted((row for one in values for row in read([one])), key=repr)


def test_messages_are_read_as_fields_of_files_are():
    texts = [b'{"user": null, "n": true}', b'{"n": {"a": 1}, "user": {"b": [2]}}', b"{}", b'{"user": "\\u00e9"}', b"{"]
    rows = messages.read_as("json")(pa.array(texts, pa.large_binary()), None, ARRIVED).rows()
    assert rows == [(None, None), ('{"b":[2]}', None), (None, None), ("é", None)]
    lines = [b"a,1", b"\xff,2", b"a\nb,3", b"", b'"x""y",4', b"a,1,2", None]
    rows = messages.read_as("csv")(pa.array(lines, pa.large_binary()), None, ARRIVED).select("user", "n").rows()
    assert sorted(rows, key=repr) == sorted([("a", 1), (None, 2), ('x"y', 4)], key=repr)


@pytest.mark.parametrize("form", ["csv", "log"])
def test_every_form_goes_all_the_way(topic, form):
    brokers, name, write = topic
    write(*["ann,/a" if form == "csv" else LINE] * 3, "one", "")
    views = wpinq.live(TYPED, budget=10**6)
    m = views.map(lambda page: page).measure(EXACT)
    views.follow(wpinq.kafka(brokers, name, form=form))
    views.advance()
    assert m.observe("/a") == 3
    views.close()


def test_what_cannot_be_followed_is_refused_and_says_nothing_of_messages(cluster, topic, monkeypatch):
    brokers, name, write = topic
    write(json("marker", 1))
    monkeypatch.setattr(room, "BROKER_TIMEOUT", 1.0)
    cases = [
        (("user",), wpinq.kafka(brokers, name), "need types"),
        (TYPED, wpinq.kafka(brokers, name, arrived="at"), "no column of the type"),
        (TYPED, wpinq.kafka(brokers, name, arrived="page"), "no column of the type"),
        ({"who": "text"}, wpinq.kafka(brokers, name, form="log"), "columns of these logs"),
        ({'a"b': "text"}, wpinq.kafka(brokers, name), "quote"),
        (TYPED, wpinq.kafka("127.0.0.1:1", name, config={"log_level": "0"}), "kafka topic"),
    ]
    for columns, source, why in cases:
        views = wpinq.live(columns, budget=1)
        with pytest.raises(wpinq.SourceError, match=why) as caught:
            views.follow(source)
        assert "marker" not in str(caught.value)
        assert caught.value.__cause__ is None
        views.close()
    for wrong in (("", "views"), ("a:1", "")):
        with pytest.raises(wpinq.SourceError, match="name a broker"):
            wpinq.kafka(*wrong)
    with pytest.raises(wpinq.SourceError, match="form"):
        wpinq.kafka("a:1", "views", form="avro")


def test_a_broker_that_is_slow_at_first_or_for_once_loses_nothing(topic, monkeypatch):
    """What it says it holds is waited for; silence of many looks, or a long one at first, stands for no message."""
    brokers, name, write = topic
    write(*[json("ann", 1)] * 5, partition=0)
    monkeypatch.setattr(room, "QUIET", 0.01)
    followed = room.Followed(wpinq.kafka(brokers, name), Schema((Column("user", Kind.TEXT),)), {f"0-{name}": 2})
    consumer, silent, asked, until = followed._consumer, [], [], time.monotonic() + 0.2

    class Slow:
        def __getattr__(self, name):
            return getattr(consumer, name)

        def consume(self, most, timeout):
            asked.append(1)
            return [] if silent or time.monotonic() < until else consumer.consume(most, timeout)

    followed._consumer = Slow()
    assert sum(frame.height for frame in followed.take()) == 3
    write(json("ann", 2), partition=0)
    silent.append("for this look")
    assert not list(followed.take())
    silent.clear()
    assert next(frame.height for _ in range(900) for frame in followed.take()) == 1
    write(json("ann", 3), partition=0)
    silent.append("for ever")
    monkeypatch.setattr(room, "BROKER_TIMEOUT", 3 * room.QUIET)
    waits = []
    for _ in range(5):
        asked.clear()
        assert not list(followed.take())
        waits.append(bool(asked))
    assert waits == [True, True, True, False, False]
    followed.close()


def test_what_the_broker_no_longer_holds_is_an_error_and_not_left_out(topic, monkeypatch):
    brokers, name, write = topic
    write(*[json("ann", 1)] * 5, partition=0)
    schema = Schema((Column("user", Kind.TEXT),))
    for position, found in ((2, 3), (5, 0), (100, None), (0, None)):
        followed = room.Followed(wpinq.kafka(brokers, name), schema, {f"0-{name}": position})
        if position == 0:
            monkeypatch.setattr(followed, "_watch", Deleted(followed._watch))
        if found is None:
            with pytest.raises(wpinq.SourceError, match="held no more"):
                list(followed.take())
        else:
            assert sum(frame.height for frame in followed.take()) == found
        followed.close()


class Deleted:
    """A broker that has let go of the first messages."""

    def __init__(self, watch):
        self._watch = watch

    def __getattr__(self, name):
        return getattr(self._watch, name)

    def get_watermark_offsets(self, *place, **more):
        return (3, self._watch.get_watermark_offsets(*place, **more)[1])


class Message:
    """What the client gives of a message."""

    def __init__(self, stamp):
        self.timestamp, self.value = lambda: stamp, lambda: b'{"user":"a"}'


def test_only_the_brokers_own_time_is_a_time_of_arrival(topic):
    """By messages as the client gives them: the broker of the tests knows no other time than the producer's."""
    brokers, name, _ = topic
    schema = Schema((Column("user", Kind.TEXT), Column("at", Kind.INSTANT)))
    followed = room.Followed(wpinq.kafka(brokers, name, arrived="at"), schema)
    (frame,) = followed._frames([Message(stamp) for stamp in [(2, 5000), (1, 5000), (0, -1)]])
    assert frame.rows() == [("a", at(5)), ("a", None), ("a", None)]
    followed.close()


def test_a_url_names_a_topic():
    found = from_url("kafka://a:1,b:2/views?form=csv&arrived=at&security.protocol=SSL")
    assert found == wpinq.kafka(["a:1", "b:2"], "views", form="csv", arrived="at", config={"security.protocol": "SSL"})
    with pytest.raises(wpinq.SourceError, match="no setting 'from'"):
        from_url("kafka://a:1/views?from=3")


def test_an_idle_topic_costs_next_to_nothing(topic, views):
    brokers, name, write = topic
    write(json("ann", 1))
    views.follow(wpinq.kafka(brokers, name))
    before = time.process_time()
    time.sleep(1.0)
    assert time.process_time() - before < 0.2, "four partitions and the broker itself, which is in this process too"
