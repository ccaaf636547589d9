"""Agents over HTTP, at `/mcp` of the server: the same tools, tokens, caps and refusals, and no page of others."""

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from serving import CONFIG, serving, written

from wpinq import errors
from wpinq.apps.serve.app import runner
from wpinq.apps.serve.catalogue import opened
from wpinq.apps.serve.config import read
from wpinq.apps.serve.tokens import Tokens
from wpinq.core.ledger import Ledger
from wpinq.errors import ExtraError

ON = CONFIG.replace("port = 0", "port = 0\nagents = true\nagents_per_minute = 2")
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with serving(written(tmp_path_factory.mktemp("site"), ON)) as asker:
        yield asker


def told(site, token, tool, **arguments):
    async def go():
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
            Client(streamable_http_client(f"{site.url}/mcp", http_client=http)) as client,
        ):
            names = [one.name for one in (await client.list_tools()).tools]
            assert names == ["data", "price", "ask", "observe", "budget"]
            found = await client.call_tool(tool, arguments)
            return found.structured_content, found.is_error

    return anyio.run(go)


def spent(site):
    return Ledger.existing(site.place / "ledger").spent()


def test_each_token_has_its_own_cap_and_the_answers_of_the_api(site):
    one, other = site.token("one", 1), site.token("other", "0.1")
    query = {"query": "SELECT COUNT(*) AS c FROM views", "epsilon": "0.25"}
    found, refused = told(site, one, "ask", **query)
    assert not refused and found["charged"]["epsilon"] == "0.25" and found["left"][0]["own"] == "0.75"
    assert site.ask(one, "POST", "/api/sql", {**query, "dry": False}).body["rows"] == found["rows"]
    before = spent(site)
    found, refused = told(site, other, "ask", query="SELECT COUNT(*) AS d FROM views WHERE size > 3", epsilon="0.25")
    assert refused and found["left"][0]["own"] == "0.1" and spent(site) == before
    found, refused = told(site, one, "observe", measurement="views.pages", bins=["p1", "nowhere"])
    assert not refused and len(found["observed"]["values"]) == 2
    assert told(site, other, "observe", measurement="hidden.x", bins=["p1"])[1]


def test_requests_of_one_token_share_what_may_be_paid_in_a_minute(site):
    token, other = site.token("often", 1), site.token("seldom", 1)
    asked = [{"query": f"SELECT COUNT(*) AS c FROM views WHERE size > {n}", "epsilon": "0.01"} for n in (11, 12, 13)]
    assert [told(site, token, "ask", **one)[1] for one in asked] == [False, False, True]
    assert not told(site, token, "ask", **asked[0])[1] and not told(site, other, "ask", **asked[2])[1]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 403),
    ],
)
def test_a_request_names_this_server_and_comes_from_no_page_of_others(site, headers, status):
    token = site.token("hosts", 1)
    own = {"Origin": site.url} if not headers else {}
    found = site.ask(token, "POST", "/mcp", LIST, headers={**JSON, **own, **headers})
    assert found.status == status and "access-control-allow-origin" not in found.headers


def test_what_is_no_request_is_refused_and_charges_nothing(site):
    token, before = site.token("hostile", 1), spent(site)
    assert site.ask(None, "POST", "/mcp", LIST, headers=JSON).status == 401
    assert site.ask("wpinq_wrong", "POST", "/mcp", LIST, headers=JSON).status == 401
    assert site.ask(token, "GET", "/mcp", headers=JSON).status == 405
    assert site.ask(token, "DELETE", "/mcp", headers=JSON).status == 405
    assert site.ask(token, "POST", "/mcp", raw=b" " * 70_000, headers=JSON).status == 413
    for raw in (b"{", b"", b"[" * 5_000, b"[]", b'"x"', b"\xff"):
        assert site.ask(token, "POST", "/mcp", raw=raw, headers=JSON).status == 400
    assert site.ask(token, "POST", "/mcp", [LIST, LIST], headers=JSON).status == 400
    assert spent(site) == before


def test_it_is_off_unless_the_curator_says_so(tmp_path):
    with serving(written(tmp_path)) as asker:
        assert asker.ask(asker.token("ann", 1), "POST", "/mcp", LIST, headers=JSON).status == 404


def test_without_the_extra_it_is_refused_in_words(tmp_path, monkeypatch):
    monkeypatch.setitem(errors.EXTRAS, "mcp", ("no_such_library",))
    config = read(written(tmp_path, ON) / "site.toml")
    with pytest.raises(ExtraError, match=r"server\.agents.*mcp"):
        runner(opened(config), Tokens(tmp_path / "tokens"))
