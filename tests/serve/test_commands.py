"""`wpinq serve`, `wpinq token` and the file on the page about serving."""

import re
from pathlib import Path

import pytest
from ledger.files import killed_while_made
from serving import serving, written

from examples import sample
from wpinq.apps.cli import main
from wpinq.core.ledger import Ledger

PAGE = Path(__file__).parents[2] / "wpinq" / "docs" / "serving.md"


def test_the_file_on_the_page_serves(tmp_path):
    (text,) = re.findall(r"^```toml\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    script = re.findall(r"^```py\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)[0]
    (tmp_path / "counts.py").write_text(script)
    (tmp_path / "site.toml").write_text(text.replace("port = 8200", "port = 0"))
    sample.write(tmp_path / "views.csv")
    with serving(tmp_path) as site:
        found = site.ask(site.token(), "GET", "/api/measurements").body
        assert "views.page_views" in [one["name"] for one in found["measurements"]] and found["fits"]
        seen = site.ask(site.token(), "POST", "/api/measurements/views.page_views/observe", {"bins": ["Page 3"]}).body
        assert seen["values"][0] > 5 * seen["half_width"] > 0


def test_tokens_are_made_listed_and_revoked(tmp_path, capsys):
    place = str(written(tmp_path) / "site.toml")
    with serving(tmp_path) as site:
        assert main(["token", "make", place, "ann", "--data", "views", "--cap", "1/2", "--cap-delta", "1e-4",
                     "--days", "3"]) == 0  # fmt: skip
        token = capsys.readouterr().out.strip()
        (left,) = site.ask(token, "GET", "/api/budget").body["data"]
        assert left["cap"] == "0.5" and left["delta_own"] == "0.0001"
        assert Ledger.existing(tmp_path / "ledger").entries()[-1].kind == "cap"
        assert main(["token", "list", place]) == 0
        listed = capsys.readouterr().out
        _, name, secret = token.split("_", 2)  # the secret may hold "_" itself
        assert "ann" in listed and secret not in listed
        assert main(["token", "revoke", place, name]) == 0
        assert site.ask(token, "GET", "/api/budget").status == 401
        main(["token", "list", place])
        assert "revoked" in capsys.readouterr().out


def test_a_cap_before_the_first_start_says_to_start_the_server(tmp_path, capsys):
    place = str(written(tmp_path) / "site.toml")
    assert main(["token", "make", place, "ann", "--cap", "1"]) == 2
    said = capsys.readouterr()
    assert f"start the server once, which makes it: wpinq serve {place}" in said.err and not said.out


def test_killed_while_its_ledger_was_made_it_starts_again(tmp_path, capsys):
    place = str(written(tmp_path) / "site.toml")
    killed_while_made(tmp_path / "ledger")
    assert main(["token", "make", place, "ann", "--cap", "1"]) == 2
    assert "start the server once" in capsys.readouterr().err
    with serving(tmp_path) as site:
        assert site.ask(site.token(), "GET", "/api/budget").status == 200


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["make", "FILE", "ann", "--data", "nope"], "there are"),
        (["make", "FILE", "ann\nforged"], "letters"),
        (["make", "FILE", "ann", "--cap", "-1"], "."),
        (["make", "FILE", "ann", "--cap-delta", "1e-6"], "goes with --cap"),
        (["revoke", "FILE", "0123"], "no token"),
        (["list", "nope.toml"], "cannot be read"),
    ],
)
def test_what_a_token_cannot_be_is_said_in_one_line(tmp_path, capsys, words, match):
    place = str(written(tmp_path) / "site.toml")
    assert main(["token", *(place if word == "FILE" else word for word in words)]) == 2
    told = capsys.readouterr()
    assert re.search(match, told.err) and told.err.count("\n") == 1 and "wpinq_" not in told.out


@pytest.mark.parametrize(
    ("analyst", "words", "match"),
    [
        ("ann", ["--cap", "50"], "cap of 'hidden': 50 is not between 0 and the budget, 10"),
        (
            "ann",
            ["--cap", "1", "--cap-delta", "1e-4"],
            "cap of 'hidden': 0.0001 is not between 0 and the delta, 0.0000",
        ),
        ("ann\nforged", ["--cap", "1"], "letters"),
    ],
)
def test_a_token_that_is_refused_sets_no_cap(tmp_path, capsys, analyst, words, match):
    place = str(written(tmp_path) / "site.toml")
    with serving(tmp_path):
        pass
    assert main(["token", "make", place, analyst, *words]) == 2
    assert match in capsys.readouterr().err
    assert "--cap-delta" in words or main(["mcp", "--config", place, "--analyst", analyst, *words]) == 2
    kinds = [row.kind for name in ("ledger", "ledger.hidden") for row in Ledger.existing(tmp_path / name).entries()]
    assert "cap" not in kinds and "delta_cap" not in kinds
