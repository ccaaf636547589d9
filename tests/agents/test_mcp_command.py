"""`wpinq mcp` in a process of its own, as the programs that have agents start it."""

import json
import signal
import subprocess
import sys

import anyio
import pytest
from mcp import Client, StdioServerParameters

from wpinq.apps.cli import main


@pytest.fixture
def kept(tmp_path):
    """A file with a token, for its owner alone."""

    def keep(token, mode=0o600):
        file = tmp_path / "token"
        file.write_text(token + "\n")
        file.chmod(mode)
        return file

    return keep


def test_an_agent_asks_over_standard_input_and_output(site, kept):
    file = kept(site.token("stdio", 1))
    words = ["-m", "wpinq", "mcp", site.url, "--token-file", str(file), "--per-minute", "1"]

    async def session():
        async with Client(StdioServerParameters(command=sys.executable, args=words)) as client:
            asked = {"query": "SELECT COUNT(*) AS c FROM views", "epsilon": "0.5"}
            tools = [tool.name for tool in (await client.list_tools()).tools]
            first = await client.call_tool("ask", asked)
            again = await client.call_tool("ask", asked)
            limited = await client.call_tool("ask", {**asked, "epsilon": "0.25"})
            return tools, first, again, limited

    tools, first, again, limited = anyio.run(session)
    assert tools == ["data", "price", "ask", "observe", "budget"]
    assert first.structured_content["rows"] == again.structured_content["rows"] and not first.is_error
    assert again.structured_content["charged"] == {}
    assert limited.is_error and "no more than 1 new" in limited.structured_content["refused"]


def line(number, method, **params):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


HELLO = line(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "x", "version": "1"})
ODD = [b"no JSON", b"\xff\xfe\x00", b"[" * 100_000, b"{}", b"", line(2, "tools/call", name=5), line(3, "nothing"),
       line(4, "tools/call", name="ask", arguments={"query": "x" * 2_000_000, "epsilon": 1})]  # fmt: skip


@pytest.fixture
def started(site, kept):
    """The command, whose input is not at its end."""
    words = [sys.executable, "-m", "wpinq", "mcp", site.url, "--token-file", str(kept(site.token("raw", 1)))]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write(HELLO + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        yield process
        process.kill()


def test_lines_that_are_none_end_nothing(started):
    for one in [*ODD, line(5, "tools/call", name="budget", arguments={})]:
        started.stdin.write(one + b"\n")
    started.stdin.flush()
    answers = {}
    while 5 not in answers:
        answer = json.loads(started.stdout.readline())
        answers[answer.get("id")] = answer
    assert "own" in str(answers[5]["result"])
    started.stdin.close()
    assert started.wait(10) == 0 and started.stderr.read() == b""


def test_an_interrupt_ends_it_though_a_line_is_waited_for(started):
    started.send_signal(signal.SIGINT)
    assert started.wait(10) == 130
    assert started.stderr.read().startswith(b"wpinq: interrupted; what was charged stays charged")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"mode": 0o644}, "others may read it"),
        ({"token": "wpinq_0123456789abcdef_" + "x" * 43}, "no valid token"),
        ({"token": "secret"}, "no token of `wpinq token make`"),
        ({"url": "http://example.org"}, "URL: write https://"),
        ({"url": "http://127.0.0.1:1"}, "cannot be reached"),
        ({"file": "nowhere"}, "--token-file"),
        ({"most": "all"}, "--most"),
    ],
)
def test_what_cannot_begin_is_told_in_one_line_without_the_token(site, kept, capsys, change, match):
    token = change.get("token", site.token("begin", 1))
    file = change.get("file", kept(token, change.get("mode", 0o600)))
    words = ["mcp", change.get("url", site.url), "--token-file", str(file), "--most", change.get("most", "1")]
    assert main(words) == 2
    told = capsys.readouterr()
    assert match in told.err and told.err.count("\n") == 1 and token not in told.err and not told.out
