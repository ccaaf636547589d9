"""Records that are sent: held once, by period, and then by nobody; the door that they come through."""

import datetime as dt
import json
import logging
import threading
import urllib.error
import urllib.request
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.publish.test_release import given
from wpinq import Secret
from wpinq.apps.cli import main
from wpinq.apps.publish import Release
from wpinq.apps.publish.file.periods import Period
from wpinq.apps.publish.intake import Intake, Keys, Sent
from wpinq.apps.publish.stream import schema_of
from wpinq.apps.serve.intake import of_release
from wpinq.apps.serve.tokens import Tokens, purpose
from wpinq.errors import BusyError, PlanError, SourceError

FILE = Path(__file__).parents[2] / "wpinq" / "docs" / "intake.md"
DAY = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
NEXT = DAY + dt.timedelta(days=1)
FEATURES = [f"f{number}" for number in range(40)]
QUESTION = {"name": "installs", "sql": "SELECT feature, COUNT(DISTINCT install) AS n FROM data GROUP BY feature",
            "keys": FEATURES, "epsilon": 1, "plot": False}  # fmt: skip


class Site:
    """A release that records are sent to, and a clock."""

    def __init__(self, home, **changes):
        self.home, self.now = home, DAY
        data = {"listen": "127.0.0.1:0", "columns": {"install": "text", "feature": "text"}, "ledger": "ledger",
                "unit": {"column": "install", "at_most": 5}} | changes.pop("data", {})  # fmt: skip
        data = {name: one for name, one in data.items() if one is not None}
        changes = {"budget": {"epsilon": 10}, "question": [QUESTION], "sink": [{"directory": "out/{date}"}]} | changes
        self.given = given(data=data, **changes)
        self.release = Release(self.given, "site", home, clock=lambda: self.now)

    @property
    def intake(self):
        file = self.release.file
        return Intake(file, "site", self.home, schema_of(file.data, self.home))

    def begin(self):
        intake = self.intake
        intake.hold(self.now)
        intake.release()

    def send(self, *sent, now=None):
        with self.intake.connected() as store:
            self.intake.take(store, sent, now or self.now)

    def held(self, period):
        return self.intake.open_reader(Period.parse(period, "day"))._reader

    def count(self, period):
        reader = self.held(period)
        return sum(frame.height for frame in reader.batches(reader.schema.names))

    def publish(self):
        with closing(self.release.follow()) as follower:
            return [getattr(one, "done", str(one)) for one in follower.step()]

    def answers(self, period="2026-11-21"):
        return (self.home / "out" / period / "installs.csv").read_text()


def one(install, feature="f1", key=None):
    return Sent((install, feature), install, key)


@pytest.fixture
def site(tmp_path):
    site = Site(tmp_path)
    site.begin()
    return site


def test_a_record_is_held_once_and_keys_are_looked_up_within_one_person(site):
    site.send(one("ann", key="k"), one("ann", key="k"), one("ann", key="other"), one("bob", key="k"), one("ann"))
    site.send(one("ann", key="k"), one("ann"))
    site.intake.close(NEXT, dt.timedelta())
    assert site.count("2026-11-21") == 5


def test_one_that_comes_again_after_midnight_is_the_same_and_what_comes_too_late_is_nothing(site):
    site.send(one("ann", key="k"))
    site.send(one("ann", key="k"), one("bob", key="k"), now=NEXT)
    site.intake.close(NEXT, dt.timedelta())
    site.send(one("ann", key="k"), one("cem", key="k"), now=NEXT)
    site.intake.close(NEXT + dt.timedelta(days=1), dt.timedelta())
    assert (site.count("2026-11-21"), site.count("2026-11-22")) == (1, 2)


def test_a_field_says_the_period_and_no_record_opens_or_closes_one(tmp_path):
    columns = {"install": "text", "time": "instant"}
    question = {**QUESTION, "sql": "SELECT COUNT(*) AS n FROM data", "keys": None}
    site = Site(tmp_path, data={"columns": columns}, stream={"at": "time", "lateness": 3600}, question=[question])
    site.begin()
    for day, hour in ((20, 23), (21, 0), (21, 23), (22, 0), (23, 0), (30, 0)):
        time = dt.datetime(2026, 11, day, hour, tzinfo=dt.UTC)
        site.send(Sent(("ann", time), "ann", f"{day} {hour}"))
    site.intake.close(dt.datetime(2026, 11, 22, 0, 30, tzinfo=dt.UTC), dt.timedelta(hours=1))
    assert site.intake.closed() == []
    site.intake.close(dt.datetime(2026, 11, 23, 2, tzinfo=dt.UTC), dt.timedelta(hours=1))
    assert [period.name for period in site.intake.closed()] == ["2026-11-21", "2026-11-22"]
    assert (site.count("2026-11-21"), site.count("2026-11-22")) == (2, 1)


def everything(home):
    return b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_after_it_is_published_nobody_has_its_records_its_keys_or_its_noise(site):
    site.send(*(one(f"install {number}", f"f{number % 7}") for number in range(300)))
    (key,) = (site.home / "ledger.intake" / "site" / "keys").iterdir()
    secret, sealed = key.read_bytes(), everything(site.home)
    assert b"install 7" not in sealed and secret in sealed
    site.now = NEXT + dt.timedelta(hours=1)
    assert site.publish() == ["published"]
    left = everything(site.home)
    assert secret not in left and not key.exists() and b"install 7" not in left
    answers = site.answers()
    with pytest.raises(SourceError, match="destroyed"):
        site.held("2026-11-21")
    with site.intake.connected() as store:
        assert store.execute("select count(*) from records").fetchone() == (0,)
    assert (site.home / "ledger.intake" / "site" / "records").stat().st_size < 40_000
    assert site.release.verify("2026-11-21") == []
    assert site.publish() == [] and site.release.run("2026-11-21").done == "was published before"
    assert site.answers() == answers


def test_the_secret_of_the_ledger_and_the_records_do_not_give_the_answers_again(tmp_path, monkeypatch):
    """Who keeps everything but the destroyed keys, and learns all records, draws other noise and other digests."""
    monkeypatch.setenv("WPINQ_SECRET", "ab" * 32)
    found = []
    for home in (tmp_path / "one", tmp_path / "two"):
        home.mkdir()
        site = Site(home)
        site.begin()
        site.send(*(one(f"install {number}", f"f{number % 7}", key="k") for number in range(300)))
        site.now = NEXT + dt.timedelta(hours=1)
        assert site.publish() == ["published"]
        found.append(site.answers())
    same = sum(one == two for one, two in zip(*(text.splitlines()[1:] for text in found), strict=True))
    assert same < 20  # of 40 draws of scale 5; more than half alike has a chance below 1e-9


@pytest.mark.parametrize("at", ["before keys", "between keys and records"])
def test_killed_while_it_destroys_it_is_destroyed_the_next_time_and_nothing_is_drawn_twice(site, monkeypatch, at):
    site.send(one("ann", key="k"), one("bob"))
    site.now = NEXT + dt.timedelta(hours=1)

    def dies(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr(*((Keys, "destroy", dies) if at == "before keys" else (Intake, "destroy", half)))
        with pytest.raises(KeyboardInterrupt):
            site.publish()
    computed = (site.home / "ledger.published" / "site" / "2026-11-21" / "installs.csv").read_text()
    assert site.publish() == ["published"] and site.answers() == computed
    assert not list((site.home / "ledger.intake" / "site" / "keys").glob("2026-11-21*"))
    with site.intake.connected() as store:
        assert store.execute("select count(*) from records").fetchone() == (0,)


def half(intake, period):
    intake._keys.destroy(period.name)
    raise KeyboardInterrupt


def test_killed_between_charge_and_answers_it_has_the_same_noise(site, monkeypatch):
    site.send(*(one(f"install {number}") for number in range(20)))
    site.now = NEXT + dt.timedelta(hours=1)
    from wpinq.apps.publish import publisher

    real, seen = publisher.compose, []

    def dies(known, asked, answers):
        facts, files = real(known, asked, answers)
        seen.append(files["installs.csv"].decode())
        if len(seen) == 1:
            raise KeyboardInterrupt
        return facts, files

    monkeypatch.setattr(publisher, "compose", dies)
    with pytest.raises(KeyboardInterrupt):
        site.publish()
    assert site.publish() == ["published"] and seen[0] == seen[1] == site.answers()


def test_the_commands_know_a_release_that_records_are_sent_to(tmp_path, capsys):
    (tmp_path / "t.toml").write_text("""
        [data]
        listen = "127.0.0.1:0"
        columns = { install = "text", feature = "text" }
        ledger = "ledger"
        [budget]
        epsilon = 1
        [[question]]
        name = "f"
        counts = ["feature"]
        keys = ["a"]
        epsilon = 1
        [[sink]]
        directory = "out/{date}"
    """)
    file = str(tmp_path / "t.toml")
    assert main(["publish", "plan", file]) == 0 and ", as each period, costs epsilon 1" in capsys.readouterr().out
    assert main(["publish", "run", file]) == 2 and "publish follow takes records" in capsys.readouterr().err
    site = Site(tmp_path)
    site.release = Release.read(file, clock=lambda: site.now)
    site.publish()
    site.now = NEXT + dt.timedelta(hours=1)
    assert site.publish() == ["published"]
    assert main(["publish", "verify", file, "--period", "2026-11-21"]) == 0
    assert "nothing is left that they could be computed from again" in capsys.readouterr().out
    (tmp_path / "out" / "2026-11-21" / "f.csv").write_text("feature,count\n")
    assert main(["publish", "verify", file, "--period", "2026-11-21"]) == 6


def test_keys_that_are_lost_before_the_end_stop_everything(site):
    site.send(one("ann"))
    (key,) = (site.home / "ledger.intake" / "site" / "keys").iterdir()
    key.unlink()
    with pytest.raises(SourceError, match="keys of its records are lost"):
        site.send(one("bob"))
    Secret.fresh().keep(key)
    site.now = NEXT + dt.timedelta(hours=1)
    assert "belongs to another" in site.publish()[0] and not (site.home / "out").exists()


def test_a_period_that_cannot_be_paid_for_waits_with_its_records(tmp_path):
    site = Site(tmp_path)
    site.given["budget"] = {"epsilon": "0.5"}
    site.release = Release(site.given, "site", tmp_path, clock=lambda: site.now)
    site.begin()
    site.send(one("ann"))
    site.now = NEXT + dt.timedelta(hours=1)
    assert "is left" in site.publish()[0] and site.count("2026-11-21") == 1


def test_a_database_from_a_backup_brings_no_record_back(site):
    site.send(*(one(f"install {number}") for number in range(20)))
    files = [path for path in (site.home / "ledger.intake" / "site").iterdir() if path.name.startswith("records")]
    kept = {path: path.read_bytes() for path in files}
    site.now = NEXT + dt.timedelta(hours=1)
    assert site.publish() == ["published"]
    answers = site.answers()
    for path, content in kept.items():
        path.write_bytes(content)
    with pytest.raises(SourceError, match="keys of its records are lost"):
        site.publish()
    assert site.answers() == answers and not list((site.home / "ledger.intake" / "site" / "keys").glob("2026-11-21*"))


def test_one_process_takes_records(site):
    first = site.intake
    first.hold(site.now)
    with pytest.raises(BusyError):
        site.intake.hold(site.now)
    first.release()


@contextmanager
def door(site):
    intake = site.intake
    with of_release(site.release.file, schema_of(site.release.file.data, site.home), intake, lambda: site.now) as place:
        yield f"http://127.0.0.1:{place.getsockname()[1]}/"


def post(url, body, **headers):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, body, {name.replace("_", "-"): one for name, one in headers.items()})
    try:
        with urllib.request.urlopen(request, timeout=20) as found:
            return found.status, found.read(), sorted(name.lower() for name in found.headers)
    except urllib.error.HTTPError as error:
        return error.code, error.read(), sorted(name.lower() for name in error.headers)


def test_the_door_leaves_the_loggers_of_the_process_alone(site):
    """Found: uvicorn's own configuration closes every handler there is, and with some of them their streams."""
    closed = []

    class Handler(logging.StreamHandler):
        def close(self):
            closed.append(self)
            super().close()

    handler = Handler()
    with door(site):
        assert closed == []
    handler.close()


RECORD = {"install": "ann", "feature": "f1"}


def test_what_is_new_repeated_or_too_late_has_one_reply(site, capfd):
    with door(site) as url:
        new = post(url, RECORD, Idempotency_Key="k")
        assert new[:2] == (204, b"")
        assert post(url, RECORD, Idempotency_Key="k") == new
        lines = b'{"install":"ann","feature":"f1"}\n{"install":"bob","feature":"f2"}\n'
        assert post(url, lines, Idempotency_Key="more") == post(url, lines, Idempotency_Key="more") == new
        site.intake.close(NEXT, dt.timedelta())
        assert post(url, RECORD, Idempotency_Key="late") == new
    assert site.count("2026-11-21") == 3
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"", {}, 400), (b"[]", {}, 400), (b"{}", {}, 400), (b"null", {}, 400), (b"\xff", {}, 400),
        (b"[" * 60_000, {}, 400),
        ({**RECORD, "more": 1}, {}, 400), ({"install": "ann"}, {}, 400), ({**RECORD, "install": None}, {}, 400),
        ({**RECORD, "install": 7}, {}, 400), ({**RECORD, "feature": "x" * 5000}, {}, 400),
        (b'{"install":"ann","feature":"f1"}\n{"install":"ann"}', {}, 400),
        (b" " * 70_000, {}, 413), (RECORD, {"Idempotency_Key": "x" * 300}, 400),
    ],
)  # fmt: skip
def test_what_is_not_as_declared_is_refused_whole(site, body, headers, status):
    with door(site) as url:
        found = post(url, body, **headers)
        assert found[0] == status and found[1].startswith(b"not taken: ")
        assert b"ann" not in found[1]
        post(url, RECORD)
    site.intake.close(NEXT, dt.timedelta())
    assert site.count("2026-11-21") == 1


def test_where_records_are_protected_a_key_of_somebody_else_silences_nobody(tmp_path):
    site = Site(tmp_path, data={"unit": None})
    site.begin()
    with door(site) as url:
        for record in (RECORD, RECORD, {**RECORD, "install": "bob"}):
            assert post(url, record, Idempotency_Key="guessed")[0] == 204
    site.intake.close(NEXT, dt.timedelta())
    assert site.count("2026-11-21") == 2


def test_an_address_has_so_many_requests_whoever_its_records_say_that_they_are_of(tmp_path):
    site = Site(tmp_path, intake={"requests": 5})
    site.begin()
    with door(site) as url:
        found = [post(url, {**RECORD, "install": f"install {number}"}) for number in range(8)]
    assert [status for status, _, _ in found] == [204] * 5 + [429] * 3 and "retry-after" in found[-1][2]


def test_who_shows_a_token_is_counted_by_it_and_not_by_the_address(tmp_path):
    site = Site(tmp_path, intake={"requests": 3, "tokens": "tokens"})
    site.begin()
    tokens, later = Tokens(tmp_path / "tokens"), dt.datetime.now(dt.UTC) + dt.timedelta(1)
    (one, grant), (two, _) = (tokens.make(name, [purpose("site")], later) for name in ("hall", "hall"))
    with door(site) as url:

        def sent(token=None, scheme="Bearer"):
            headers = {} if token is None else {"Authorization": f"{scheme} {token}"}
            return post(url, RECORD, **headers)[0]

        assert [sent() for _ in range(4)] == [204] * 3 + [429]
        assert [sent(one, "bearer") for _ in range(4)] == [204] * 3 + [429], "its address has none left"
        assert [sent(two) for _ in range(4)] == [204] * 3 + [429], "each token for itself"
        assert sent() == 429
    site.intake.close(NEXT, dt.timedelta())
    assert site.count("2026-11-21") == 9
    assert not any(grant.id.encode() in path.read_bytes() for path in (tmp_path / "ledger.intake").rglob("*")
                   if path.is_file()), "no token is kept with a record"  # fmt: skip


def test_a_token_that_counts_no_more_is_refused_and_counted_by_address(tmp_path, caplog):
    site = Site(tmp_path, intake={"requests": 5, "tokens": "tokens"})
    site.begin()
    tokens, now = Tokens(tmp_path / "tokens"), dt.datetime.now(dt.UTC)
    revoked, grant = tokens.make("a", [purpose("site")], now + dt.timedelta(1))
    tokens.revoke(grant.id)
    good, _ = tokens.make("c", [purpose("site")], now + dt.timedelta(1))
    none = [revoked, tokens.make("b", [purpose("site")], now)[0], tokens.make("d", ["site"], now + dt.timedelta(1))[0],
            "x", ""]  # fmt: skip
    with door(site) as url:
        found = [post(url, RECORD, Authorization=f"Bearer {token}") for token in [*none, "x"]]
        assert [status for status, _, _ in found] == [401] * 5 + [429]
        assert post(url, RECORD)[0] == 429, "guesses use up what the address may"
        assert post(url, RECORD, Authorization=f"Bearer {good}")[0] == 204
        (tmp_path / "tokens").unlink()
        assert post(url, RECORD, Authorization=f"Bearer {good}")[0] == 503, "no token counts where none can be read"
    assert not any(token and token in caplog.text for token in [*none[:3], good])
    site.intake.close(NEXT, dt.timedelta())
    assert site.count("2026-11-21") == 1


def test_the_command_makes_tokens_for_senders(tmp_path, capsys):
    file = tmp_path / "t.toml"
    text = FILE.read_text().partition("```toml\n")[2].partition("```")[0].replace(":8232", ":0")
    file.write_text(text)
    (tmp_path / "features.csv").write_text("feature\nf1\n")
    assert main(["token", "make", str(file), "hall 3"]) == 2
    assert "[intake] tokens" in capsys.readouterr().err
    file.write_text(text + '[intake]\nrequests = 1\ntokens = "tokens"\n')
    assert main(["token", "make", str(file), "hall 3", "--cap", "1"]) == 2
    capsys.readouterr()
    assert main(["token", "make", str(file), "hall 3"]) == 0
    token = capsys.readouterr().out.strip()
    release = Release.read(file, clock=lambda: DAY)
    with closing(release.follow()) as follower, of_release(release.file, follower.schema, follower.intake,
                                                          lambda: DAY) as place:  # fmt: skip
        url = f"http://127.0.0.1:{place.getsockname()[1]}/"
        assert [post(url, RECORD)[0] for _ in range(2)] == [204, 429]
        assert post(url, RECORD, Authorization=f"Bearer {token}")[0] == 204
        assert main(["token", "list", str(file)]) == 0
        assert "hall 3" in capsys.readouterr().out
        assert main(["token", "revoke", str(file), token.split("_")[1]]) == 0
        assert post(url, RECORD, Authorization=f"Bearer {token}")[0] == 429, "and its address has none left"


def test_many_at_once_are_each_held_once(site):
    site.release = Release({**site.given, "intake": {"requests": 0}}, "site", site.home, clock=lambda: site.now)
    with door(site) as url:

        def send(number):
            for again in range(2):
                assert post(url, {**RECORD, "install": f"{number}"}, Idempotency_Key=f"{again // 2}")[0] == 204

        threads = [threading.Thread(target=send, args=(number,)) for number in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    site.intake.close(NEXT, dt.timedelta())
    assert site.count("2026-11-21") == 40


def test_a_disk_that_takes_nothing_is_told_and_the_next_record_is_taken(site, monkeypatch, caplog):
    real, broken = Intake.take, [True, True]

    def take(self, *given):
        if broken and broken.pop():
            raise OSError(28, "ann is on a full disk")
        return real(self, *given)

    monkeypatch.setattr(Intake, "take", take)
    with door(site) as url:
        found = [post(url, RECORD, Idempotency_Key="k") for _ in range(3)]
        assert [status for status, _, _ in found] == [503, 503, 204] and found[0][
            1
        ] == b"not taken: come again later.\n"
    site.intake.close(NEXT, dt.timedelta())
    assert site.count("2026-11-21") == 1 and "ann " not in caplog.text and "made durable" in caplog.text


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"data": {"processes": 2}}, "this process alone"),
        ({"data": {"listen": "8232"}}, "an address and a port"),
        ({"data": {"source": "x.csv"}}, "leave out source"),
        ({"data": {"columns": None}}, "name those of a record"),
        ({"data": {"columns": {"install": "bytes"}}}, "JSON cannot say"),
        ({"data": {"unit": {"column": "user", "at_most": 1}}}, "'user' is no column"),
        ({"stream": {"at": "feature"}}, "no column of times"),
        ({"stream": {"late": "next"}}, "leave out keep and late"),
        ({"data": {"listen": None}}, "'source' is missing"),
        ({"data": {"listen": None, "source": "{date}.csv"}, "intake": {"body": 9}}, "goes with data.listen"),
        ({"intake": {"requests": -1}}, "intake.requests"),
    ],
)  # fmt: skip
def test_a_release_file_that_cannot_be_is_refused(tmp_path, changes, match):
    with pytest.raises(PlanError, match=match):
        Site(tmp_path, **changes)
