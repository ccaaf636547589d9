"""Servers with and without one privacy unit, asked the same; `python -m attacks.fuzz --served` draws random requests.

Nothing here is statistical: what may not differ is compared exactly.
"""

import logging

import pytest
from attacks.fuzz import served, served_plants, served_steps
from depth import DEEP

from wpinq.serve.app import OPERATIONS


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_every_operation_is_asked():
    assert {one.handler.__name__ for one in OPERATIONS} == set(served_steps.OPERATIONS)


@pytest.mark.parametrize("seed", range(40, 60 if DEEP else 42))
def test_no_answer_status_or_count_tells_a_unit(seed):
    found = served.judge(served.grow(seed))
    assert not found, f"python -m attacks.fuzz --served --case {seed}\n" + "\n".join(found)


@pytest.mark.parametrize("name", sorted(served_plants.PLANTS))
def test_a_bug_that_tells_records_is_found(name):
    seed, _, texts = served_plants.hunt(name, seconds=20)
    assert seed == served_plants.PLANTS[name].seed, texts
