"""Live sources that end, are killed and merge, from fixed seeds; `attacks.fuzz --of restarts` draws random ones."""

import pytest
from attacks.fuzz import restarts
from depth import deep


@pytest.mark.parametrize("seed", [1, 2])
def test_a_source_that_ends_anywhere_gives_the_answers_of_one_that_does_not(seed):
    assert not restarts.FUZZER.wrong(seed)


@deep
@pytest.mark.slow
def test_so_do_others_that_merge_and_are_killed_in_earnest():
    for seed in (8, 23, 119):
        assert not restarts.FUZZER.wrong(seed)
    assert not restarts.killed(restarts.grow(9))
