"""`wpinq mcp` in a process of its own, as the programs that have agents start it."""

import json
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import anyio
import processes
import pytest
from depth import thin
from mcp import Client, StdioServerParameters
from serving import serving, written

from wpinq.apps.agents.tools import TOOLS
from wpinq.apps.cli import main
from wpinq.apps.serve.app import OPERATIONS
from wpinq.apps.serve.config import read
from wpinq.apps.serve.local import inside
from wpinq.core.ledger import Ledger


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


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files of one's own, which no server serves."""
    place = written(tmp_path_factory.mktemp("files"))
    script = place / "script.py"
    script.write_text("print('of no protocol')\n" + script.read_text())
    return ["--config", str(place / "site.toml"), "--cap", "1"]


def begun(words, program=("-m", "wpinq", "mcp")):
    """The command, which has answered a first message, and whose input is not at its end."""
    words = [sys.executable, *program, *words]
    process = processes.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(HELLO + b"\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["id"] == 1
    return process


@pytest.fixture(params=["server", "files"])
def started(request, site, kept, files):
    remote = [site.url, "--token-file", str(kept(site.token("raw", 1)))]
    with begun(remote if request.param == "server" else files) as process:
        yield process
        process.kill()


def told_at_the_end(process):
    return process.stderr.read().replace(b"of no protocol\n", b"")  # a script's print goes where people read it


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
    assert started.wait(60) == 0 and told_at_the_end(started) == b""


@thin(2)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_though_a_line_is_waited_for(started, number, code):
    started.send_signal(number)
    assert started.wait(60) == code
    assert told_at_the_end(started).startswith(b"wpinq: interrupted; what was charged stays charged")


def test_files_are_asked_without_a_server_and_their_ledger_says_so(tmp_path):
    """What an agent paid is free to a server of the same file, and the answer is the same."""
    place = written(tmp_path)
    words = ["-m", "wpinq", "mcp", "--config", str(place / "site.toml"), "--analyst", "ann", "--cap", "0.5"]
    asked = {"query": "SELECT COUNT(*) AS c FROM views", "epsilon": "0.25"}

    async def session():
        command = StdioServerParameters(command=sys.executable, args=[*words, "--per-minute", "2"])
        async with Client(command) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            calls = [("data", {}), ("ask", asked), ("ask", {**asked, "epsilon": "0.5"}), ("budget", {}),
                     ("observe", {"measurement": "views.pages", "bins": ["p1"]}),
                     ("ask", {"query": "SELECT COUNT(*) FROM hidden", "epsilon": "0.1"})]  # fmt: skip
            return tools, [await client.call_tool(*call) for call in calls]

    tools, answers = anyio.run(session)
    data, first, dear, budget, observed, late = [answer.structured_content for answer in answers]
    assert tools == list(TOOLS) and [answer.is_error for answer in answers] == [False, False, True, False, False, True]
    assert {table["name"] for table in data["tables"]} == {"views", "hidden"}
    assert first["charged"]["epsilon"] == "0.25" and len(observed["observed"]["values"]) == 1
    assert {left["own"] for left in budget["left"]} == {"0.25", "0.5"} and dear["left"] == budget["left"]
    assert "no more than 2 new" in late["refused"]
    ledger = Ledger.existing(place / "ledger")
    assert [row.analyst for row in ledger.entries() if row.kind == "charge"][-1] == "ann"
    rows = len(ledger.entries())
    with serving(place) as server:
        again = server.ask(server.token("ann"), "POST", "/api/sql", {**asked, "dry": False})
        assert again.body["rows"] == first["rows"] and len(ledger.entries()) == rows
    with inside(read(place / "site.toml"), OPERATIONS, "ann", Fraction("0.5")):
        assert len(ledger.entries()) == rows, "the same cap again is no row"


@pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="needs /proc")
def test_nothing_listens_over_files(files):
    with begun(files) as process:
        sockets = {link.readlink().name for link in Path(f"/proc/{process.pid}/fd").iterdir() if link.is_symlink()}
        tables = [Path(f"/proc/{process.pid}/net/{kind}") for kind in ("tcp", "tcp6", "udp", "udp6")]
        lines = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:]]
        assert not {f"socket:[{fields[9]}]" for fields in lines} & sockets
        process.stdin.close()
        assert process.wait(60) == 0


SLOW = """
import sys, time
from wpinq.apps.cli import main, mcp
from wpinq.apps.serve import questions

def answered(answer):
    print("computing", file=sys.stderr, flush=True)
    time.sleep(60)

questions._answered, mcp.LAST = answered, 0.1
sys.exit(main(["mcp", *sys.argv[1:]]))
"""


def test_the_end_of_its_input_ends_it_though_a_question_is_computed(files):
    asked = {"query": "SELECT COUNT(*) AS c FROM views", "epsilon": "0.25"}
    with begun(files, ["-c", SLOW]) as process:
        process.stdin.write(line(2, "tools/call", name="ask", arguments=asked) + b"\n")
        process.stdin.flush()
        while process.stderr.readline() != b"computing\n":
            pass
        process.stdin.close()
        assert process.wait(60) == 0


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
        ({"more": ["--cap", "1"]}, "--analyst and --cap go with --config"),
        ({"more": ["--config", "site.toml"]}, "--config: it goes without URL"),
    ],
)
def test_what_cannot_begin_is_told_in_one_line_without_the_token(site, kept, capsys, change, match):
    token = change.get("token", site.token("begin", 1))
    file = change.get("file", kept(token, change.get("mode", 0o600)))
    words = ["mcp", change.get("url", site.url), "--token-file", str(file), "--most", change.get("most", "1")]
    assert main([*words, *change.get("more", [])]) == 2
    told = capsys.readouterr()
    assert match in told.err and told.err.count("\n") == 1 and token not in told.err and not told.out
