"""What the page of tools shows is what is tried."""

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
