"""Docstrings as pages: examples get a fence, and weights, stability and source a paragraph each."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> (?:.+\n?)+", re.MULTILINE)
FACT = re.compile(r"^(Weights|Stability|Source):", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Change the docstring of every object before it is read."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of what was found."""
        if obj.docstring:
            text = FACT.sub(r"\n**\1.**", obj.docstring.value)
            obj.docstring.value = EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)
