"""The help of every command says what its source says: rich reads `:key:` as a picture and `[word]` as a style."""

from __future__ import annotations

import pytest
from rich.emoji import Emoji
from rich.text import Text
from typer.main import get_command

from wpinq.apps.cli import main
from wpinq.apps.cli.app import COMMANDS, app
from wpinq.apps.scripts.script import HOME


def made(name):
    return get_command(app).get_command(None, name)


@pytest.mark.parametrize("name", ["sql", "run", "degrees", "graph"])
def test_help_is_a_screen_by_subject_and_all_of_it_is_behind_help_all(name, capsys):
    assert main([name, "--help"]) == 0
    short = capsys.readouterr().out
    assert main([name, "--help-all"]) == 0
    whole = capsys.readouterr().out
    assert len(short.splitlines()) <= 60 < len(whole.splitlines()) and "--help-all" in short
    for one in made(name).params:
        if one.param_type_name == "option":
            assert one.opts[0] in short and one.opts[0] in whole
            assert "".join((one.help or "").split()) in "".join(whole.split())
    assert "Others" not in whole


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_help_that_another_points_to_is_shown_without_hidden_options(name, capsys):
    assert main([name, "--help"]) == 0
    texts = [capsys.readouterr().out]
    if "--help-all" in texts[0]:
        assert main([name, "--help-all"]) == 0
        texts.append(capsys.readouterr().out)
    hidden = [one.opts[0] for one in made(name).params if getattr(one, "hidden", False)]
    assert not [option for option in hidden for text in texts if option in text]


@pytest.mark.parametrize(
    ("name", "told"),
    [("run", "Seconds between the answers about a stream. [default: 60]"),
     ("table", "have none of the values. [default: other]"),
     ("audit", "How many pairs of neighbours to try. [default: 200]"), ("sql", "ask or refuse. [default: charge]")],
)  # fmt: skip
def test_all_of_a_help_tells_defaults(name, told, capsys):
    assert main([name, "--help-all"]) == 0
    assert told in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_that_is_short_has_one_help(name, capsys):
    main([name, "--help"])
    assert len(capsys.readouterr().out.splitlines()) <= 60


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_no_help_holds_what_is_read_as_a_picture_or_a_style(name):
    command = made(name)
    for one in (command, *getattr(command, "commands", {}).values()):
        texts = [one.help or "", *(getattr(parameter, "help", "") or "" for parameter in one.params)]
        for text in texts:
            assert Emoji.replace(text) == text
            assert Text.from_markup(text).plain == text


@pytest.mark.parametrize("name", ["run", "try", "explain", "audit", "shell"])
def test_every_script_that_comes_with_wpinq_is_named(name, capsys):
    assert main([name, "--help-all"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert all(f" {path.stem}" in told for path in HOME.glob("[!_]*.py"))
