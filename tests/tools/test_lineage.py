"""OpenLineage events of a period: what they carry, and that they stop nothing; run by .ci/tools."""

import datetime as dt
import json
import sys

import pytest

from wpinq.apps.cli import main
from wpinq.apps.publish import Release
from wpinq.errors import BudgetError, SourceError

pytest.importorskip("openlineage.client", reason="openlineage-python is not installed; .ci/tools tries it")
from openlineage.client import OpenLineageClient
from openlineage.client.serde import Serde
from openlineage.client.transport import Transport

from wpinq.tools.lineage import publish

NOW = dt.datetime(2026, 11, 24, 6, tzinfo=dt.UTC)


class Kept(Transport):
    """Keeps events as they would be sent, or refuses them."""

    kind = "kept"

    def __init__(self, *, fails=False):
        self.events, self.fails = [], fails

    def emit(self, event):
        if self.fails:
            raise ConnectionError("http://user:password@host")
        self.events.append(json.loads(Serde.to_json(event)))


@pytest.fixture
def release(tmp_path):
    def made(records="ann,/a\n", epsilon=1):
        home = tmp_path / f"site{len(list(tmp_path.iterdir()))}"
        home.mkdir()
        for day in ("2026-11-20", "2026-11-21"):
            (home / f"{day}.csv").write_text("user,page\n" + records)
        return Release({
            "data": {"source": "{date}.csv", "ledger": "ledger", "unit": {"column": "user", "at_most": 2}},
            "budget": {"epsilon": epsilon}, "sink": [{"directory": "out/{date}"}],
            "question": [{"name": "views", "counts": ["page"], "keys": ["/a"], "epsilon": "1/4", "plot": False}],
        }, "site", home, clock=lambda: NOW)  # fmt: skip

    return made


def told(release, period="2026-11-21"):
    kept = Kept()
    publish(release, period, client=OpenLineageClient(transport=kept))
    return kept.events


def test_the_charge_is_a_facet_of_the_run(release):
    begun, done = told(release())
    assert (begun["eventType"], done["eventType"]) == ("START", "COMPLETE")
    assert begun["run"]["runId"] == done["run"]["runId"] and done["job"]["name"] == "site"
    assert [one["name"] for one in done["inputs"] + done["outputs"]] == ["site.records", "site.views"]
    assert done["run"]["facets"]["nominalTime"]["nominalStartTime"] == "2026-11-21T00:00:00+00:00"
    charge = {name: value for name, value in done["run"]["facets"]["wpinq_charge"].items() if name[0] != "_"}
    assert charge == {
        "done": "published", "protects": release().protects, "epsilon": 0.25, "rho": 0, "delta": 0,
        "kind": "epsilon", "budget": 1, "left": 0.75,
    }  # fmt: skip


def test_a_period_of_before_is_told_as_such(release):
    site = release()
    told(site)
    assert told(site)[1]["run"]["facets"]["wpinq_charge"]["done"] == "was published before"


def test_a_refusal_is_told_in_one_line(release):
    site = release(epsilon="1/8")
    kept = Kept()
    with pytest.raises(BudgetError):
        publish(site, "2026-11-21", client=OpenLineageClient(transport=kept))
    assert [one["eventType"] for one in kept.events] == ["START", "FAIL"]
    error = kept.events[1]["run"]["facets"]["errorMessage"]
    assert "nothing was charged" in error["message"] and error.get("stackTrace") is None


def test_a_refusal_that_follows_from_records_is_told_without_them(release, tmp_path):
    """It sent on what `--check` says of null columns, which is for the curator alone, and where the records lie."""
    for number, (records, options, why) in enumerate((
        (b"user,page\nann,\xff\n", {"check": True}, "null in every record"), (None, {}, "no such file")
    )):  # fmt: skip
        site, kept, path = release(), Kept(), tmp_path / f"site{number}" / "2026-11-21.csv"
        path.unlink() if records is None else path.write_bytes(records)
        with pytest.raises(SourceError, match=why):
            publish(site, "2026-11-21", client=OpenLineageClient(transport=kept), **options)
        message = kept.events[1]["run"]["facets"]["errorMessage"]["message"]
        assert "tells their curator alone" in message
        assert not any(word in message for word in ("null", "page", "csv"))


def test_events_do_not_depend_on_records(release):
    def plain(event):
        event.pop("eventTime")
        event["run"].pop("runId")
        return event

    few, many = (list(map(plain, told(release(text)))) for text in ("ann,/a\n", "ann,/a\nbob,/a\n" * 50))
    assert few == many


def test_an_event_that_nobody_takes_stops_nothing(release):
    site = release()
    with pytest.warns(RuntimeWarning, match="did not take the event") as warned:
        done = publish(site, "2026-11-21", client=OpenLineageClient(transport=Kept(fails=True)))
    assert done.done == "published" and "password" not in "".join(str(one.message) for one in warned)


def test_the_command_tells_it_where_the_environment_says(tmp_path, monkeypatch, capsys, events):
    (tmp_path / "2026-11-21.csv").write_text("user,page\nann,/a\n")
    (tmp_path / "site.toml").write_text(
        '[data]\nsource = "{date}.csv"\nledger = "ledger"\n[budget]\nepsilon = 1\n'
        '[[question]]\nname = "views"\ncounts = ["page"]\nkeys = ["/a"]\nepsilon = 1\nplot = false\n'
        '[[sink]]\ndirectory = "out/{date}"\n'
    )
    command = ["publish", "run", str(tmp_path / "site.toml"), "--period", "2026-11-21", "--openlineage"]
    assert main(command) == 0, capsys.readouterr()
    assert events()[1]["run"]["facets"]["wpinq_charge"]["epsilon"] == 1
    monkeypatch.setitem(sys.modules, "openlineage", None)
    assert main(command) == 2 and "pip install 'wpinq[openlineage]'" in capsys.readouterr().err
