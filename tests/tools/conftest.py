"""What the page of tools shows is what is tried, and events of OpenLineage are kept in a file."""

import json
import re
from pathlib import Path

import pytest

import wpinq

PAGE = Path(wpinq.__file__).parent / "docs" / "tools.md"


@pytest.fixture
def block():
    """Gives the Python block of a section of the page."""
    return lambda section: re.search(rf"^## {section}.*?^```py\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)[
        1
    ]


@pytest.fixture
def events(tmp_path, monkeypatch):
    """The events of OpenLineage by now."""
    path = tmp_path / "events"
    for name, value in (("TYPE", "file"), ("LOG_FILE_PATH", str(path)), ("APPEND", "true")):
        monkeypatch.setenv(f"OPENLINEAGE__TRANSPORT__{name}", value)
    return lambda: [json.loads(line) for line in path.read_text().splitlines()]
