"""Senders to `wpinq run --listen` show tokens, and are counted by them as those to a release are."""

import datetime as dt
import urllib.error
import urllib.request

import pytest

from wpinq.apps.cli import main
from wpinq.apps.publish.file.declared import Intake as Limits
from wpinq.apps.serve.appending import Appending
from wpinq.apps.serve.intake import Form, taking
from wpinq.core import Kind
from wpinq.errors import SourceError
from wpinq.sources.form import named, parse_columns

SCHEMA = named(parse_columns("user,page"), Kind.TEXT, None, "columns")


def door(path):
    store = Appending(path, SCHEMA)
    store.begin()
    return taking("127.0.0.1:0", Form(SCHEMA, "user"), store, lambda: dt.datetime.now(dt.UTC), Limits(requests=2))


def post(listener, token=None):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, b'{"user": "u", "page": "a"}', headers), timeout=20
        ) as it:
            return it.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def made(path, capsys):
    assert main(["token", "make", str(path), "hall 3"]) == 0
    return capsys.readouterr().out.strip()


def test_who_shows_a_token_is_counted_by_it(tmp_path, capsys):
    path = tmp_path / "sent.jsonl"
    token, other = made(path, capsys), made(tmp_path / "others.jsonl", capsys)
    with door(path) as listener:
        assert [post(listener) for _ in range(3)] == [204, 204, 429]
        assert [post(listener, token) for _ in range(3)] == [204, 204, 429], "its address has none left"
    with door(path) as listener:
        assert post(listener, other) == 401, "it is for another file"
        assert main(["token", "revoke", str(path), token.split("_")[1]]) == 0
        assert post(listener, token) == 401
        assert post(listener) == 429, "guesses use up what the address may"
        later = made(path, capsys)
        assert post(listener, later.splitlines()[-1]) == 204, "made while it runs"
        (tmp_path / "sent.tokens").unlink()
        assert post(listener, later.splitlines()[-1]) == 503, "no token counts where none can be read"
    lines = path.read_text()
    assert lines.count("\n") == 5 and token.split("_")[1] not in lines, "no token is kept with a record"


def test_without_tokens_what_is_shown_counts_for_nothing(tmp_path):
    with door(tmp_path / "sent.jsonl") as listener:
        assert [post(listener, f"wpinq_{number}") for number in range(3)] == [204, 204, 429]
    assert not (tmp_path / "sent.tokens").exists()


def test_tokens_that_others_may_read_or_that_lie_elsewhere_open_no_door(tmp_path, capsys):
    path, tokens = tmp_path / "sent.jsonl", tmp_path / "sent.tokens"
    made(path, capsys)
    tokens.chmod(0o644)
    with pytest.raises(SourceError, match=r"sent\.tokens"), door(path):
        pass
    tokens.unlink()
    tokens.symlink_to(tmp_path / "nowhere")
    with pytest.raises(SourceError, match=r"sent\.tokens"), door(path):
        pass


def test_caps_are_of_servers(tmp_path, capsys):
    assert main(["token", "make", str(tmp_path / "sent.jsonl"), "hall 3", "--cap", "1"]) == 2
    assert "none of a server" in capsys.readouterr().err
