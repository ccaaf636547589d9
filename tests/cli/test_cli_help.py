"""The help of every command says what its source says: rich reads `:key:` as a picture and `[word]` as a style."""

from __future__ import annotations

import pytest
from rich.emoji import Emoji
from rich.text import Text
from typer.main import get_command

from wpinq.apps.cli.app import COMMANDS, app


def made(name):
    return get_command(app).get_command(None, name)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_no_help_holds_what_is_read_as_a_picture_or_a_style(name):
    command = made(name)
    for one in (command, *getattr(command, "commands", {}).values()):
        texts = [one.help or "", *(getattr(parameter, "help", "") or "" for parameter in one.params)]
        for text in texts:
            assert Emoji.replace(text) == text
            assert Text.from_markup(text).plain == text
