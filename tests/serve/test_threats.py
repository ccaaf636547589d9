"""What a stranger, an analyst or several may try against a server, and what it must not give away."""

import contextlib
import datetime as dt
import http.client
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from fractions import Fraction

import msgspec
import pytest
from depth import deep
from serving import CONFIG, serving, written

from wpinq.apps.remote import grammar
from wpinq.apps.serve.tokens import Tokens
from wpinq.core.ledger import Ledger

COUNT = {"query": "SELECT page, COUNT(*) AS c FROM views GROUP BY page", "keys": ["p1"], "epsilon": "1/10"}
TABLE = {"do": "table", "name": "views"}


def measure(site, token, plan, **more):
    return site.ask(token, "POST", "/api/measure", {"plan": plan, "epsilon": 1, **more})


def lower(depth):
    """page.lower().lower()..., so many times."""
    value = {"is": "column", "name": "page"}
    for _ in range(depth):
        value = {"is": "do", "name": "lower", "of": [value]}
    return {"is": "traced", "reads": ["page"], "names": ["page"], "values": [value]}


def longer(times):
    """A text that becomes so many times as long."""
    value = {"is": "do", "name": "replace", "of": [{"is": "column", "name": "page"}], "options": ["p", "p" * times]}
    return {"is": "traced", "reads": ["page"], "names": ["page"], "values": [value]}


PAGES = " || ".join(["page"] * 16) + " AS page"
DOUBLED = [TABLE, *({"do": "concat", "left": place, "right": place} for place in range(12))]
COLUMNS = {"is": "chosen", "names": ["user"]}
CONSTANT = {"is": "traced", "reads": [], "names": ["k"], "values": [{"is": "constant", "type": "integer", "value": 1}]}
JOIN = {"do": "join", "left_key": COLUMNS, "right_key": COLUMNS, "at_most": 20}
BOMBS = {
    "too many steps": [TABLE] * 41,
    "too deep": [TABLE, *({"do": "distinct", "of": place} for place in range(17))],
    "read too often": DOUBLED,
    "joins of joins": [TABLE, *({**JOIN, "left": place, "right": place} for place in range(3))],
    "heavy keys": [TABLE, {**JOIN, "left": 0, "right": 0, "at_most": 10**6}],
    "heavy keys of joins": [TABLE, {**JOIN, "left": 0, "right": 0, "at_most": 900}, {**JOIN, "left": 1, "right": 1}],
    "every pair": [TABLE, {**JOIN, "left": 0, "right": 0, "left_key": CONSTANT, "right_key": CONSTANT, "at_most": 0}],
    "a deep expression": [TABLE, {"do": "map", "of": 0, "function": lower(40)}],
    "long texts": [TABLE, *({"do": "map", "of": place, "function": longer(200)} for place in range(4))],
    "long texts in SQL": [
        TABLE, *({"do": "map", "of": at, "function": {"is": "sql", "text": PAGES}} for at in range(5))
    ],
    "thin slices": [TABLE, {"do": "shave", "of": 0, "thickness": ["1/10000000"]}],
    "itself": [{"do": "distinct", "of": 0}],
    "the future": [TABLE, {"do": "concat", "left": 0, "right": 2}, TABLE],
    "a part that is none": [TABLE, {"do": "part", "of": 0, "key": COLUMNS, "parts": ["a"], "part": 1}],
    "an unknown operator": [TABLE, {"do": "eval", "of": 0}],
    "a private operator": [TABLE, {"do": "_then", "of": 0}],
    "python": [TABLE, {"do": "map", "of": 0, "function": {"is": "python", "text": "lambda page: page"}}],
    "another data set": [{"do": "table", "name": "hidden"}],
    "nothing": [],
}  # fmt: skip


def doubled(times, table="views"):
    """A query whose subqueries double a text, so many times."""
    inner = f"SELECT page FROM {table}"
    for number in range(times):
        inner = f"SELECT concat(page, page) AS page FROM ({inner}) AS t{number}"
    return inner


@pytest.mark.parametrize(("times", "status"), [(12, 200), (20, 422)])
def test_texts_that_grow_from_subquery_to_subquery_are_refused_before_they_are_made(site, times, status):
    query = f"SELECT page, COUNT(*) AS c FROM ({doubled(times)}) AS t GROUP BY page"
    found = site.ask(site.token("long", 10), "POST", "/api/sql", {**COUNT, "query": query, "dry": True})
    assert found.status == status and (status == 200) != ("times as long, step by step" in json.dumps(found.body))


@pytest.mark.parametrize("name", BOMBS)
def test_a_plan_that_is_a_bomb_is_refused_before_it_is_priced(site, name):
    token, before = site.token("bomber", 10), Ledger.existing(site.place / "ledger").spent()
    begun = time.process_time()
    for dry in (True, False):
        found = measure(site, token, BOMBS[name], dry=dry)
        assert found.status == 422, found.body
    assert time.process_time() - begun < 3 and Ledger.existing(site.place / "ledger").spent() == before


def test_a_body_that_nests_for_ever_is_refused(site):
    token = site.token()
    head = b'{"plan": [{"do": "map", "of": 0, "function": {"is": "traced", "reads": [], "names": ["a"], "values": ['
    for raw in (
        head + b'{"is": "do", "name": "lower", "of": [' * 1_500,
        b'{"plan": ' + b"[" * 60_000,
        b'{"a":' * 10_000,
    ):
        assert site.ask(token, "POST", "/api/measure", raw=raw).status == 422


def do(name, *of, options=()):
    return {"is": "do", "name": name, "of": list(of), "options": list(options)}


PAGE, SIZE = {"is": "column", "name": "page"}, {"is": "column", "name": "size"}
ONE = {"is": "constant", "type": "integer", "value": 1}
LIES = {
    "dunder": do("__class__", PAGE),
    "a method that is none": do("format", PAGE, options=["{0.__class__}"]),
    "options of another type": do("slice", PAGE, options=["a", "b"]),
    "too few operands": do("add", SIZE),
    "too many": do("lower", PAGE, PAGE),
    "turned": do("lt", ONE, SIZE),
    "folded": do("add", ONE, ONE),
    "a column that it does not read": {"is": "column", "name": "user"},
    "a column that is none": {"is": "column", "name": "__builtins__"},
    "a constant of another type": {"is": "constant", "type": "date", "value": "not a date"},
    "a type that is none": {"is": "constant", "type": "code", "value": "1"},
    "code in a constant": do("part", PAGE, options=["'+__import__('os').system('true')+'", "0"]),
    "a number beyond columns": {"is": "constant", "type": "integer", "value": 2**63},
}


@pytest.mark.parametrize("name", LIES)
def test_an_expression_that_no_function_traces_to_is_refused(site, name):
    token = site.token("liar", 10)
    reads = ["page", "size"]
    function = {"is": "traced", "reads": reads, "names": ["v"], "values": [LIES[name]]}
    found = measure(site, token, [TABLE, {"do": "map", "of": 0, "function": function}])
    assert found.status == 422, found.body


def test_the_text_of_a_constant_is_never_code(site):
    """Quotes, escapes and braces in constants are the constant, in every place that takes one."""
    token, views = site.token("quoter", 10), site.catalogue.data["views"].views
    odd = "'); import os #\\ \" {x} %s \0 \u2028"
    value = do("add", {"is": "constant", "type": "text", "value": odd}, do("replace", PAGE, options=["p", odd]))
    function = {"is": "traced", "reads": ["page"], "names": ["v"], "values": [value]}
    found = measure(site, token, [TABLE, {"do": "map", "of": 0, "function": function}], dry=False, name="odd")
    assert found.status == 200
    name = found.body["measurement"]["name"]
    wanted = f"{odd}{odd}1"
    there = site.ask(token, "POST", f"/api/measurements/{name}/observe", {"bins": [wanted]}).body["values"]
    here = views.map(lambda page: odd + page.replace("p", odd), columns=["v"]).measure(1, "odd")
    assert there == [here.observe(wanted)] and there[0] > 30


def test_every_step_of_the_grammar_refuses_what_it_does_not_know():
    for step in grammar.AnyStep.__args__:
        tag = step.__struct_config__.tag
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(json.dumps({"do": tag, "of": 0, "pickle": "gASV"}), type=grammar.AnyStep)


def test_guessing_tokens_is_paced_and_shuts_nobody_out(tmp_path):
    with serving(written(tmp_path)) as site:
        good = site.token()
        wrong = [site.ask(good[:-3] + f"{number:03}", "GET", "/api/measurements").status for number in range(60)]
        assert set(wrong) == {401, 429} and wrong[-1] == 429
        assert site.ask(good, "GET", "/api/measurements").status == 200


def test_a_flood_by_one_token_is_paced_and_shuts_no_other_out(tmp_path):
    limits = "\n[limits]\nrequests = 20\n"
    with serving(written(tmp_path, CONFIG + limits)) as site:
        loud, calm = site.token("loud"), site.token("calm")
        found = [site.ask(loud, "GET", "/api/measurements") for _ in range(40)]
        assert {one.status for one in found} == {200, 429} and found[-1].headers["retry-after"] == "10"
        assert site.ask(calm, "GET", "/api/measurements").status == 200


def test_no_token_bin_or_query_reaches_a_log(site, capfd, caplog):
    token = site.token("logged", 1)
    with caplog.at_level(logging.DEBUG):
        site.ask(token, "POST", "/api/measurements/views.pages/observe", {"bins": ["a-secret-bin"]})
        site.ask(token, "POST", "/api/sql", {**COUNT, "query": "SELECT COUNT(*) FROM views WHERE page = 'a-secret'"})
        site.ask(token + "x", "GET", "/api/measurements")
        site.ask(token, "GET", "/api/%0d%0aforged%20line")
    written_ = caplog.text + "".join(capfd.readouterr())
    assert token.split("_", 2)[2] not in written_ and "a-secret" not in written_ and "\nforged" not in written_


def test_a_failure_inside_is_told_without_its_text(site, monkeypatch, capfd):
    def fails(*_, **__):
        raise RuntimeError("ann viewed page 7")

    monkeypatch.setattr(type(site.catalogue.measured["views.pages"].measurement), "observe", fails)
    found = site.ask(site.token(), "POST", "/api/measurements/views.pages/observe", {"bins": ["p1"]})
    assert found.status == 500 and b"ann" not in found.raw and "ann viewed" not in "".join(capfd.readouterr())


def test_a_file_of_tokens_that_is_gone_lets_nobody_in_and_tells_nothing(site, monkeypatch, capfd):
    def fails(*_):
        raise OSError("/a/path/of/this/machine")

    token = site.token()
    monkeypatch.setattr(type(site.tokens), "granted", fails)
    found = site.ask(token, "GET", "/api/measurements")
    assert found.status == 500 and b"machine" not in found.raw and "machine" not in "".join(capfd.readouterr())


def test_a_form_of_another_site_asks_nothing(site):
    """A browser sends no bearer token by itself, and may not read or preflight anything here."""
    headers = {"Origin": "https://evil.example", "Content-Type": "text/plain"}
    assert site.ask(None, "POST", "/api/sql", COUNT, headers=headers).status == 401
    found = site.ask(None, "OPTIONS", "/api/sql", headers={**headers, "Access-Control-Request-Method": "POST"})
    assert found.status in (401, 405) and not [one for one in found.headers if one.lower().startswith("access-control")]


def test_present_and_absent_bins_take_the_same_time(site):
    """The quickest quarters of 300 alternating requests end within a fifth: a lookup that raised or scanned would show.

    False alarms: a busy machine interrupts requests, which makes the others no slower. Of 17 processes on two cores,
    medians once differed by a fifth: about half of the requests had waited.
    """
    token, connection = site.token(), http.client.HTTPConnection("127.0.0.1", site.port, timeout=30)
    took = {"p1": [], "zz": []}
    for number in range(600):
        name = ("p1", "zz")[number % 2]
        begun = time.perf_counter()
        body = json.dumps({"bins": [name] * 50})
        connection.request("POST", "/api/measurements/views.pages/observe", body, {"Authorization": f"Bearer {token}"})
        found = connection.getresponse()
        found.read()
        took[name].append(time.perf_counter() - begun)
    connection.close()
    present, absent = (sorted(one)[len(one) // 4] for one in took.values())
    assert abs(present - absent) < 0.2 * max(present, absent)


def test_slow_clients_are_let_go(tmp_path, monkeypatch):
    from wpinq.apps.serve import run

    monkeypatch.setattr(run, "HEAD", 0.3)
    with serving(written(tmp_path, CONFIG + "\n[limits]\nseconds = 0.3\n")) as site:
        token = site.token()

        def sends(*pieces):
            with socket.create_connection(("127.0.0.1", site.port), timeout=10) as client:
                for piece in pieces:
                    client.sendall(piece)
                with contextlib.suppress(ConnectionError):
                    return client.recv(1_000)
            return b""

        assert sends() == b"" and sends(b"GET / HT") == b""
        assert sends(b"GET /api/measurements HTTP/1.1\r\n" + b"x: " + b"y" * 20_000) == b""
        head = f"POST /api/sql HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nContent-Length: 99\r\n\r\n"
        assert sends(head.encode(), b"{").startswith(b"HTTP/1.1 408")
        assert site.ask(token, "GET", "/api/measurements").status == 200


def test_no_request_is_sent_elsewhere(site):
    """An address with a slash at its end would be redirected to the host that the request names, token and all."""
    for path in ("/api/budget/", "/api/sql/", "//evil.example/api/budget", "/api/openapi.json/"):
        found = site.ask(site.token(), "GET", path, headers={"Host": "evil.example"})
        assert found.status == 404 and "location" not in {name.lower() for name in found.headers}


SMUGGLED = {
    "two lengths": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths of one kind": b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
    "an odd encoding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a folded header": b"X: a\r\n b\r\nContent-Length : 0\r\n\r\n",
}


@pytest.mark.parametrize("name", SMUGGLED)
def test_a_request_that_proxies_may_read_otherwise_is_refused_and_no_line_is_logged(site, name, capfd, caplog):
    """A second request in what a proxy takes for the body would be asked with another client's connection."""
    head = f"POST /api/sql HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {site.token()}\r\n".encode()
    second = b"GET /api/budget HTTP/1.1\r\nHost: a\r\n\r\n"
    with socket.create_connection(("127.0.0.1", site.port), timeout=10) as client:
        client.sendall(head + SMUGGLED[name] + second)
        found = b""
        with contextlib.suppress(ConnectionError):
            while part := client.recv(65_536):
                found += part
    assert found.startswith(b"HTTP/1.1 400") and found.count(b"HTTP/1.1") == 1
    assert not caplog.records and capfd.readouterr().err == ""  # a stranger cannot fill the log


def test_nobody_fills_the_ledger_with_questions_that_cost_nothing(site):
    token, before = site.token("filler", 1), Ledger.existing(site.place / "ledger").spent()
    for dry in (True, False):
        body = {**COUNT, "epsilon": "1e-6", "dry": dry}
        for found in (
            site.ask(token, "POST", "/api/sql", body),
            measure(site, token, [TABLE], epsilon="1e-6", dry=dry),
        ):
            assert found.status == 422 and "the least here" in found.body["error"]["message"]
    assert Ledger.existing(site.place / "ledger").spent() == before


def test_whoever_asks_for_the_history_again_and_again_holds_up_no_charge(site, monkeypatch):
    """All rows are read under the ledger's lock; they are read once for as long as none was added."""
    token, read, entries = site.token("historian", 1), [], Ledger.entries
    monkeypatch.setattr(Ledger, "entries", lambda self: read.append(1) or entries(self))
    for number in (1, 2):
        assert site.ask(token, "POST", "/api/sql", {**COUNT, "name": f"h{number}", "dry": False}).status == 200
        told = [site.ask(token, "GET", "/api/history").body["asked"] for _ in range(5)]
        assert [len(one) for one in told] == [number] * 5 and len(read) == number


def test_a_lying_length_or_two_tokens_are_refused(site):
    token = site.token()
    found = site.ask(token, "POST", "/api/sql", raw=b"{}", headers={"Content-Length": "999999999"})
    assert found.status == 413
    both = site.ask(None, "GET", "/api/measurements", headers={"Authorization": f"Bearer {token}, Bearer {token}"})
    assert both.status == 401


@deep
def test_a_server_that_is_killed_charges_nothing_twice_and_answers_the_same(tmp_path):
    """Killed by SIGKILL while questions run; started anew, every question that was charged is free and the same."""
    place = written(tmp_path)
    run = [sys.executable, "-m", "wpinq", "serve", str(place / "site.toml")]

    def started():
        process = subprocess.Popen(run, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
        line = process.stdout.readline()
        return process, int(line.rsplit(":", 1)[1])

    process, port = started()
    asked = [{**COUNT, "name": f"k{number}", "dry": False} for number in range(4)]
    Ledger.existing(place / "ledger").cap("ann", Fraction(1))
    token, _ = Tokens(place / "tokens").make("ann", ["views"], dt.datetime.now(dt.UTC) + dt.timedelta(1))
    answers = {}

    def ask(at, body):
        connection = http.client.HTTPConnection("127.0.0.1", at, timeout=30)
        with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("POST", "/api/sql", json.dumps(body), {"Authorization": f"Bearer {token}"})
            found = connection.getresponse()
            return found.status, json.loads(found.read())
        return None, None

    threads = [threading.Thread(target=lambda body=body: answers.update({body["name"]: ask(port, body)}))
               for body in asked]  # fmt: skip
    for thread in threads:
        thread.start()
    time.sleep(0.15)
    process.send_signal(signal.SIGKILL)
    for thread in threads:
        thread.join()
    process.wait()
    process.stdout.close()
    process, port = started()
    try:
        for body in asked:
            status, found = ask(port, body)
            assert status == 200
            before = answers[body["name"]]
            assert before[0] in (None, 200)
            assert before[0] is None or before[1]["rows"] == found["rows"]
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
    ledger = Ledger.existing(place / "ledger")
    assert ledger.spent()[0] == Fraction(3) + Fraction(4, 10) and ledger.entries()


def test_curators_have_rights_that_analysts_have_not(site):
    analyst, curator = site.token("watched", 1), site.token("boss", curator=True)
    for method, path in (("GET", "/api/ledger"), ("GET", "/api/tokens"), ("DELETE", "/api/tokens/0123456789abcdef")):
        assert site.ask(analyst, method, path).status == 403
    assert site.ask(analyst, "PUT", "/api/caps", {"data": "views", "analyst": "watched", "cap": 100}).status == 403
    assert site.ask(analyst, "POST", "/api/sql", {**COUNT, "name": "seen", "dry": False}).status == 200
    (ledger,) = site.ask(curator, "GET", "/api/ledger").body["data"]
    assert {"analyst": "watched", "cap": "1", "spent": "0.1", "delta_cap": None, "delta_spent": "0"} in ledger["caps"]
    mine = site.ask(analyst, "GET", "/api/history").body["asked"]
    assert [row["epsilon"] for row in mine] == ["0.1"] and mine[0]["analyst"] == "watched"
    raised = site.ask(curator, "PUT", "/api/caps", {"data": "views", "analyst": "watched", "cap": "1/2"})
    assert raised.body["own"] == "0.4"
    assert site.ask(curator, "PUT", "/api/caps", {"data": "hidden", "analyst": "a", "cap": 1}).status == 403
    named = analyst.split("_")[1]
    assert named in [one["id"] for one in site.ask(curator, "GET", "/api/tokens").body["tokens"]]
    assert site.ask(curator, "DELETE", f"/api/tokens/{named}").body["revoked"] is not None
    assert site.ask(analyst, "GET", "/api/budget").status == 401
