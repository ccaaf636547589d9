"""How deep the tests go: `WPINQ_TESTS` is the way that conftest.py tells of.

Some tests try many examples, seeds, names or moments of a kill, each of which may find what no other does. All of them
at once take longer than one waits for a test run: by default a test takes a third, always the same, and in the ways
`deep` and `search` it takes all. `.ci/run` runs the whole suite in the way `deep` too.
"""

import os
from collections.abc import Iterable
from typing import TypeVar

import pytest

T = TypeVar("T")

WAY = os.environ.get("WPINQ_TESTS", "same")
DEEP = WAY != "same"

deep = pytest.mark.skipif(not DEEP, reason="it takes ten seconds, and others look at the same in less; .ci/run runs it")
"""Of a test that says what others say in less time, of more or at greater length."""


def often(times: int) -> int:
    """How many of so many examples are taken: all, or a third, but five at the least."""
    return times if DEEP else max(times // 3, min(times, 5))


def some(every: Iterable[T]) -> list[T]:
    """All of these, or the first, the fourth, and so on."""
    return list(every)[:: 1 if DEEP else 3]
