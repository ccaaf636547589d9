"""Files with and without one record, from fixed seeds; `python -m attacks.fuzz --readers` draws random ones."""

import pytest
from attacks.fuzz import readers
from attacks.fuzz.files import grow
from depth import often


@pytest.mark.parametrize("first", range(0, 150, 30))
def test_nothing_but_the_record_itself_differs(first):
    for seed in range(first, first + often(30)):
        assert not readers.judge(grow(seed)), f"python -m attacks.fuzz --readers --seed {seed}: {grow(seed)}"


@pytest.mark.parametrize("name", sorted(readers.PLANTS))
def test_a_bug_that_is_put_back_is_found(name):
    seed, text = readers.hunt(name, most=100)
    assert seed >= 0, text
