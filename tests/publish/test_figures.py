"""What a publishing process tells its operators: figures that no record moves, health, and the budget's end."""

import datetime as dt
import json
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from wpinq.apps.cli.publish import Voice, _ended
from wpinq.apps.publish import Release
from wpinq.apps.publish.endpoint import PATIENCE, Endpoint
from wpinq.apps.publish.figures import Figures
from wpinq.errors import SourceError

NOW = dt.datetime(2026, 11, 24, 6, tzinfo=dt.UTC)
DAYS = ["2026-11-20", "2026-11-21", "2026-11-22"]


@pytest.fixture
def release(tmp_path):
    """Three days of views, and a budget for three of them."""

    def made(records="ann,/a\n", **more):
        home = tmp_path / f"site{len(list(tmp_path.iterdir()))}"
        home.mkdir()
        for day in DAYS:
            (home / f"{day}.csv").write_text("user,page\n" + records)
        return Release({
            "data": {"source": "{date}.csv", "ledger": "ledger", "unit": {"column": "user", "at_most": 2}},
            "budget": {"epsilon": 3}, "sink": [{"directory": "out/{date}"}],
            "question": [{"name": "views", "counts": ["page"], "keys": ["/a"], "epsilon": 1, "plot": False}],
        } | more, "site", home, clock=lambda: NOW)  # fmt: skip

    return made


@pytest.fixture
def webhook():
    """A service on this machine that takes posts, or refuses them."""

    class Service(BaseHTTPRequestHandler):
        status, posts = 200, []

        def do_POST(self):
            content = self.rfile.read(int(self.headers["Content-Length"]))
            self.posts.append((self.headers["Content-Type"], json.loads(content)))
            self.send_response(self.status)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Service)
    Service.posts = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Service.url = f"http://127.0.0.1:{server.server_port}/secret-path"
    yield Service
    server.shutdown()
    server.server_close()


def got(url):
    """The status and the content of an answer."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_figures_and_health_are_served(release):
    one, figures = release(), Figures()
    endpoint = Endpoint("0", figures.registry)
    at = f"http://127.0.0.1:{endpoint.port}"
    try:
        assert got(f"{at}/metrics")[0] == 200
        assert (got(f"{at}/health")[0], got(f"{at}/ready")[0], got(f"{at}/other")[0]) == (200, 503, 404)
        one.run(DAYS[0])
        one.run(DAYS[1])
        figures.tell(one)
        endpoint.alive(ready=True)
        assert got(f"{at}/ready") == (200, "ok\n")
        told = dict(line.rsplit(" ", 1) for line in got(f"{at}/metrics")[1].splitlines() if line[0] != "#")
        assert told['wpinq_publish_periods{release="site",stage="published"}'] == "2.0"
        assert told['wpinq_publish_periods{release="site",stage="missing"}'] == "2.0"
        assert (told['wpinq_publish_budget{release="site"}'], told['wpinq_publish_budget_left{release="site"}']) == (
            "3.0", "1.0")  # fmt: skip
        assert float(told['wpinq_publish_lag_seconds{release="site"}']) > 0
        endpoint._seen -= PATIENCE
        assert got(f"{at}/health")[0] == 503
        asked = urllib.request.Request(f"{at}/metrics", headers={"Accept": "application/openmetrics-text"})
        with urllib.request.urlopen(asked, timeout=10) as answer:
            assert answer.read().endswith(b"# EOF\n")
    finally:
        endpoint.close()


def test_no_figure_depends_on_records(release, monkeypatch):
    """Two sites alike but for their records, one of which has a day that cannot be read: the same figures, at one time.

    What cannot be read, or was changed, is told to the curator and counted nowhere; what the budget ends is counted.
    """
    now = NOW.timestamp()
    monkeypatch.setattr("wpinq.apps.publish.figures._now", lambda: now)
    found = []
    for records in ("", "".join(f"u{n},/a\nu{n},/b\n" for n in range(500))):
        one, figures = release(records, stream=None), Figures()
        voice = Voice(one, lines=True, figures=figures)
        whole = (one.home / f"{DAYS[1]}.csv").read_text()
        if records:
            (one.home / f"{DAYS[1]}.csv").write_text("user\n")
        for day in (DAYS[1], DAYS[1], DAYS[0], DAYS[2], "2026-11-23", "2026-11-19"):
            (one.home / f"{day}.csv").touch() if day in DAYS else (one.home / f"{day}.csv").write_text(whole)
            for outcome in _ended(one.run(day) for _ in "1"):
                voice.tell(outcome)
            if records:
                (one.home / f"{DAYS[1]}.csv").write_text(whole)
        figures.tell(one)
        samples = [sample for family in figures.collect() for sample in family.samples]
        found.append([(one.name, one.labels, one.value) for one in samples])
    assert found[0] == found[1]
    assert ("wpinq_publish_refusals_total", {"release": "site", "why": "budget"}, 2.0) in found[0]
    assert {name for name, *_ in found[0] if name.endswith("_seconds")} == {
        f"wpinq_publish_{what}_seconds" for what in ("up", "looked", "next", "lag")}  # fmt: skip
    assert next(value for name, _, value in found[0] if name.endswith("next_seconds")) == 18 * 3600


@pytest.mark.parametrize("address", ["nonsense", "70000", "host.invalid:1", ":"])
def test_an_address_that_cannot_be_is_refused(address):
    with pytest.raises(SourceError, match="cannot be listened on"):
        Endpoint(address, Figures().registry)


def test_the_end_of_the_budget_is_told_once_and_again_where_it_was_not_taken(release, webhook):
    one = release(alerts={"webhook": webhook.url, "below": 0.5})
    one.run(DAYS[0])
    assert one.alert() is None
    assert webhook.posts == []  # two thirds are left
    one.run(DAYS[1])
    webhook.status = 500
    why = one.alert()
    assert "127.0.0.1 did not take" in why
    assert "secret-path" not in why
    webhook.status = 200
    assert one.alert() is None
    assert one.alert() is None
    content = {"event": "budget", "release": "site", "unit": "epsilon", "budget": "3", "left": "1", "below": 0.5}
    assert webhook.posts == [("application/json", content)] * 2


def test_each_month_has_its_own_end(release, webhook):
    one = release(alerts={"webhook": webhook.url, "below": 0.9}, budget={"epsilon": 2, "per": "month"})
    one.run(DAYS[0])
    assert one.alert() is None
    assert webhook.posts[0][1]["in"] == "2026-11"
    assert (webhook.posts[0][1]["left"], one.funds().left) == ("1", 1)


def test_a_webhook_that_is_away_stops_nothing(release):
    one = release(alerts={"webhook": "http://127.0.0.1:9/x", "below": 0.9})
    assert one.run(DAYS[0]).done == "published"
    assert "did not take" in one.alert()
    assert one.run(DAYS[1]).done == "published"
