"""Messages as no client of a library sends them: each is answered as JSON-RPC has it, none is charged, none ends it."""

import json
import subprocess
import sys

import processes
import pytest
from serving import CONFIG, serving, written

from wpinq.apps.agents.tools import TOOLS
from wpinq.core.ledger import Ledger

JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
ON = CONFIG.replace("port = 0", "port = 0\nagents = true")
CLIENT = {"capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
ASK = {"query": "SELECT COUNT(*) AS c FROM views", "epsilon": "0.01"}
METHOD, PARAMETERS = -32601, -32602


def message(number, method, /, **params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def call(name, /, **more):
    return message(9, "tools/call", name=name, **more)


ANSWERED = {
    "a version of before": message(9, "initialize", protocolVersion="1999-01-01", **CLIENT),
    "a version to come": message(9, "initialize", protocolVersion="2099-01-01", **CLIENT),
    "ping": message(9, "ping"),
    "no parameters": {"jsonrpc": "2.0", "id": 9, "method": "tools/list"},
    "null for parameters": {"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": None},
    "an empty number": message("", "ping"),
    "a number below zero": message(-1, "ping"),
    "a huge number": message(10**400, "ping"),
    "a number twice": b'{"jsonrpc":"2.0","id":12,"id":9,"method":"ping"}',
    "null for arguments": call("budget", arguments=None),
    "a token of progress": call("budget", arguments={}, _meta={"progressToken": 5}),
}
REFUSED = {
    "a version that is no text": (message(9, "initialize", protocolVersion=5, **CLIENT), PARAMETERS),
    "no client": (message(9, "initialize", protocolVersion="2025-06-18"), PARAMETERS),
    "no method of that name": (message(9, "nothing"), METHOD),
    "an empty method": (message(9, ""), METHOD),
    "resources": (message(9, "resources/list"), METHOD),
    "prompts": (message(9, "prompts/get", name="x"), METHOD),
    "what a client answers": (message(9, "sampling/createMessage"), METHOD),
    "a level of logs": (message(9, "logging/setLevel", level="debug"), METHOD),
    "no name": (message(9, "tools/call"), PARAMETERS),
    "a name that is no text": (message(9, "tools/call", name=5), PARAMETERS),
    "no tool": (call("ledger", arguments={}), PARAMETERS),
    "an empty name": (call("", arguments={}), PARAMETERS),
    "a list for arguments": (call("ask", arguments=[ASK]), PARAMETERS),
    "a text for arguments": (call("ask", arguments="x"), PARAMETERS),
    "odd meta": (call("ask", arguments=ASK, _meta="x"), PARAMETERS),
}
TOLD = {
    "a field that is none": call("budget", arguments={"x": 1}),
    "a huge query": call("ask", arguments={**ASK, "query": "x" * 60_000}),
    "no number": b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"ask","arguments":{"query":"x","epsilon":NaN}}}',  # noqa: E501
    "no end": b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"ask","arguments":{"query":"x","epsilon":1e999}}}',  # noqa: E501
    "a NUL": call("ask", arguments={**ASK, "query": "SELECT \0"}),
    "an amount that is a word": call("ask", arguments={**ASK, "epsilon": "all"}),
}
"""Refused by the tool, so that a model can mend it."""
SILENT = {
    "a notification of nothing": {"jsonrpc": "2.0", "method": "notifications/x"},
    "a call without a number": {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "ask", "arguments": ASK}},
    **{f"a call with the number {number}": {**call("ask", arguments=ASK), "id": number}
       for number in (None, 1.5, True, [9], {})},
    "an answer": {"jsonrpc": "2.0", "id": 9, "result": {}},
    "an error": {"jsonrpc": "2.0", "id": 9, "error": {"code": 1, "message": "x"}},
}  # fmt: skip
"""Nothing is done, and nobody waits for an answer."""
UNREADABLE = {
    "no JSON": b"no JSON",
    "nothing": b"",
    "a batch": [message(9, "ping"), message(10, "ping")],
    "an empty batch": [],
    "a list of parameters": {"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": []},
    "another protocol": {"jsonrpc": "1.0", "id": 9, "method": "ping"},
    "no protocol": {"id": 9, "method": "ping"},
    "no UTF-8": b"\xff\xfe\x00",
    "UTF-16": json.dumps(message(9, "ping")).encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf" + json.dumps(message(9, "ping")).encode(),
    "half a character": call("ask", arguments={**ASK, "query": "\ud800"}),
    "arguments of great depth": json.dumps(call("ask", arguments={"keys": 0})).replace(
        "0}", "[" * 5_000 + "]" * 5_000 + "}").encode(),
    "an endless amount": json.dumps(call("ask", arguments={**ASK, "epsilon": 0})).replace(
        '"epsilon": 0', '"epsilon": ' + "1" * 6_000).encode(),
    "two on a line": json.dumps(message(9, "ping")).encode() * 2,
}  # fmt: skip
CASES = {
    **{name: (content, "answered") for name, content in ANSWERED.items()},
    **REFUSED,
    **{name: (content, "told") for name, content in TOLD.items()},
    **{name: (content, "silent") for name, content in SILENT.items()},
    **{name: (content, "unreadable") for name, content in UNREADABLE.items()},
}


def kind_of(answer, number):
    """What an answer says: that it is one, or told by a tool, or the code of an error."""
    assert answer["jsonrpc"] == "2.0" and ("error" in answer or answer["id"] == number)
    if "error" in answer:
        return answer["error"]["code"]
    refused = answer["result"].get("isError", False)
    assert not refused or {"refused", "would_be_answered"} <= set(answer["result"]["structuredContent"])
    return "told" if refused else "answered"


def bytes_of(content):
    return content if isinstance(content, bytes) else json.dumps(content).encode()


def number_of(content):
    return content["id"] if isinstance(content, dict) else 9


class Line:
    """The command, to which one writes lines."""

    def __init__(self, process):
        self.process = process
        self.write(message(1, "initialize", protocolVersion="2025-06-18", **CLIENT))
        assert kind_of(self.read(), 1) == "answered"

    def write(self, content):
        self.process.stdin.write(bytes_of(content) + b"\n")
        self.process.stdin.flush()

    def read(self):
        return json.loads(self.process.stdout.readline())

    def kind(self, content, *, silent=False):
        """What the next line says; of a message that has no answer, that of one behind it comes."""
        self.write(content)
        if not silent:
            return kind_of(self.read(), number_of(content))
        self.write(message("behind", "ping"))
        return "silent" if self.read() == {"jsonrpc": "2.0", "id": "behind", "result": {}} else "an answer"


@pytest.fixture(scope="module")
def line(tmp_path_factory):
    place = written(tmp_path_factory.mktemp("files"))
    words = [sys.executable, "-m", "wpinq", "mcp", "--config", str(place / "site.toml"), "--cap", "1"]
    with processes.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield Line(process), Ledger.existing(place / "ledger")
        process.stdin.close()
        assert process.wait(60) == 0


def test_each_line_is_answered_as_it_must_be_and_charges_nothing(line):
    begun, ledger = line
    before = ledger.spent()
    for name, (content, wanted) in CASES.items():
        kind = begun.kind(content, silent=wanted == "silent")
        assert kind == (-32600 if wanted == "unreadable" else wanted), (name, kind)
    assert ledger.spent() == before
    assert begun.kind(call("ask", arguments=ASK)) == "answered" and ledger.spent() > before


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with serving(written(tmp_path_factory.mktemp("site"), ON)) as asker:
        yield asker


def test_each_request_is_answered_as_it_must_be_and_charges_nothing(site):
    token, ledger = site.token("raw", 1), Ledger.existing(site.place / "ledger")
    before = ledger.spent()
    for name, (content, wanted) in CASES.items():
        found = site.ask(token, "POST", "/mcp", raw=bytes_of(content), headers=JSON)
        if wanted == "silent":
            assert (found.status, found.raw) == (202, b""), (name, found)
        elif wanted == "unreadable":
            assert found.status == 400 and found.body["error"]["code"] in (-32700, -32600, PARAMETERS), (name, found)
        else:
            assert found.status == 200 and kind_of(found.body, number_of(content)) == wanted, (name, found)
    assert ledger.spent() == before
    assert site.ask(token, "POST", "/mcp", call("ask", arguments=ASK), headers=JSON).status == 200
    assert ledger.spent() > before


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Accept": "application/json"}, 200),
        ({"Accept": "text/html"}, 406),
        ({"Mcp-Protocol-Version": "1999-01-01"}, 400),
        ({"Mcp-Protocol-Version": "2025-11-25"}, 200),
        ({"Mcp-Session-Id": "of another"}, 200),
        ({"Last-Event-ID": "7"}, 200),
    ],
)
def test_headers_of_the_protocol(site, headers, status):
    found = site.ask(site.token("headers", 1), "POST", "/mcp", message(9, "tools/list"), headers={**JSON, **headers})
    assert found.status == status
    assert status != 200 or [tool["name"] for tool in found.body["result"]["tools"]] == list(TOOLS)
