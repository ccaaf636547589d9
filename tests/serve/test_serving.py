"""The contract of a server, asked over HTTP."""

import datetime as dt
import json

import pytest

from wpinq.apps.serve.config import read
from wpinq.apps.serve.tokens import Tokens
from wpinq.errors import PlanError, SourceError


def test_what_there_is_is_listed_with_meaning_scale_and_cost(site):
    found = site.ask(site.token(), "GET", "/api/measurements").body
    (pages,) = [one for one in found["measurements"] if one["name"] == "views.pages"]
    assert pages["meaning"] == "Views of each page" and pages["cost"] == {"epsilon": "1"} and pages["scale"] == 4
    assert pages["columns"] == [{"name": "page", "type": "text"}] and "at most 4" in pages["protects"]
    assert [one["name"] for one in found["data"]] == ["views"] and found["fits"][0]["cdf"] == "views.cdf"


def test_observed_bins_are_those_of_python(site):
    token, made = site.token(), site.catalogue.measured["views.pages"].measurement
    found = site.ask(token, "POST", "/api/measurements/views.pages/observe", {"bins": ["p1", "nope", None]}).body
    assert found["values"] == made.observe_many(["p1", "nope", None]).tolist()
    assert found["half_width"] == made.interval() and found["level"] == 0.95
    ranged = site.ask(token, "POST", "/api/measurements/views.cdf/observe", {"range": {"first": 1, "last": 700}}).body
    assert ranged["values"] == site.catalogue.measured["views.cdf"].measurement.observe_many(range(1, 701)).tolist()


@pytest.mark.parametrize(
    ("path", "raw", "status"),
    [
        ("views.pages", b'{"bins": [3]}', 422),
        ("views.pages", b'{"bins": ["a"], "more": 1}', 422),
        ("views.pages", b'{"bins": []}', 200),
        ("views.pages", b'{"bins": [], "level": 1}', 422),
        ("views.pages", b"{}", 422),
        ("views.pages", b"", 422),
        ("views.pages", b"\xff\xfe", 422),
        ("views.pages", b'{"bins": ' + b"[" * 60_000, 422),
        ("views.pages", b'{"bins": "' + b"a" * 70_000, 413),
        ("views.cdf", b'{"range": {"first": "1", "last": 2}}', 422),
        ("views.cdf", b'{"range": {"first": 1, "last": 100000000}}', 422),
        ("views.cdf", b'{"range": {"first": 1e400, "last": 2}}', 422),
        ("views.cdf", b'{"bins": [true]}', 200),
        ("hidden.pages", b'{"bins": ["p1"]}', 403),
        ("no.such", b'{"bins": ["p1"]}', 403),
        ("..%2f..%2fledger", b'{"bins": ["p1"]}', 404),
        ("%0d%0aSet-Cookie:%20a=b", b'{"bins": ["p1"]}', 403),
    ],
)
def test_every_refusal_has_the_one_shape(site, path, raw, status):
    found = site.ask(site.token(), "POST", f"/api/measurements/{path}/observe", raw=raw)
    assert found.status == status
    if status != 200:
        assert list(found.body) == ["error"] and set(found.body["error"]) == {"status", "code", "message"}
        assert found.body["error"]["status"] == status and len(found.raw) < 1_000
    assert found.headers["cache-control"] == "no-store" and "set-cookie" not in found.headers
    assert not [name for name in found.headers if name.lower().startswith("access-control")]


def test_what_is_hidden_from_a_token_is_refused_like_what_is_not_there(site):
    one, two = (site.ask(site.token(), "POST", f"/api/measurements/{name}/observe", {"bins": ["p1"]})
                for name in ("hidden.pages", "none.pages"))  # fmt: skip
    assert (one.status, one.raw) == (two.status, two.raw)


def test_another_method_is_refused_with_those_that_there_are(site):
    found = site.ask(site.token(), "PUT", "/api/sql", {})
    assert found.status == 405 and found.headers["allow"] == "POST" and found.body["error"]["code"] == "method"


def test_tokens_are_refused_when_wrong_expired_or_revoked_and_all_alike(site):
    good = site.token()
    late, gone = site.token(lasts=dt.timedelta(seconds=-1)), site.token()
    site.tokens.revoke(gone.split("_")[1])
    other = good[:-1] + ("A" if good[-1] != "A" else "B")
    answers = [site.ask(token, "GET", "/api/measurements") for token in (None, "", "x", other, late, gone, good + "A")]
    assert {(one.status, one.raw) for one in answers} == {(401, answers[0].raw)}
    assert answers[0].headers["www-authenticate"] == "Bearer"
    assert site.ask(good, "GET", "/api/measurements").status == 200


def test_a_token_of_another_server_process_counts_at_once(site):
    elsewhere = Tokens(site.place / "tokens")
    token, grant = elsewhere.make("eve", ["views"], dt.datetime.now(dt.UTC) + dt.timedelta(1))
    assert site.ask(token, "GET", "/api/measurements").status == 200
    elsewhere.revoke(grant.id)
    assert site.ask(token, "GET", "/api/measurements").status == 401


def test_the_file_of_tokens_holds_none_and_is_private(site):
    token = site.token("carol")
    place = site.place / "tokens"
    secret = token.rsplit("_", 1)[1]
    assert secret.encode() not in place.read_bytes() and place.stat().st_mode & 0o077 == 0
    place.chmod(0o644)
    with pytest.raises(SourceError, match="chmod 600"):
        Tokens(place)
    place.chmod(0o600)


def test_the_description_names_every_operation_and_needs_no_token(site):
    found = site.ask(None, "GET", "/api/openapi.json")
    assert found.status == 200 and found.body["openapi"].startswith("3.1")
    paths = found.body["paths"]
    assert {"/api/measurements", "/api/measurements/{name}/observe"} <= set(paths)
    observe = paths["/api/measurements/{name}/observe"]["post"]
    assert set(observe["responses"]) >= {"200", "401", "403", "413", "422", "429"}
    text = json.dumps(found.body)
    assert '"additionalProperties": false' in text
    assert all(name.isalnum() for name in found.body["components"]["schemas"])  # and says nothing of where classes are


def test_a_file_that_says_what_cannot_be_is_refused(tmp_path):
    def refused(text, match):
        (tmp_path / "site.toml").write_text(text)
        with pytest.raises(PlanError, match=match):
            read(tmp_path / "site.toml")

    data = '[data.v]\nsource = "v.csv"\nledger = "l"\n'
    refused(data + "port = 1\n", "port")
    refused("[server]\nport = 1\n", "data")
    refused('[data."a/b"]\nsource = "v.csv"\nledger = "l"\n', "addresses")
    refused(data + '[fit.f]\ndata = "w"\ncdf = "c"\nsequence = "s"\n', "no data set 'w'")
    refused(data + '[server]\nhost = "0.0.0.0"\n', "clear text")
    refused(data + '[server]\ncertificate = "c"\n', "go together")
    refused('home = "/"\n' + data, "home")
