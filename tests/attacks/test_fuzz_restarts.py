"""Live sources that end, are killed and merge, from fixed seeds; `attacks.fuzz.restarts` draws random ones."""

import pytest
from attacks.fuzz import restarts
from attacks.fuzz.search import hunt


def check(seed):
    found = restarts.check(seed)
    assert not found, f"python -m attacks.fuzz.restarts --case {seed}\n" + "\n".join(found)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_source_that_ends_anywhere_gives_the_answers_of_one_that_does_not(seed):
    check(seed)


@pytest.mark.slow
def test_so_do_others_that_merge_and_are_killed_in_earnest():
    for seed in (8, 23, 119):
        check(seed)
    assert not restarts.killed(9)


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.slow] if name in ("all_of_people", "first_again") else [])
    for name in sorted(restarts.PLANTS)
])  # fmt: skip
def test_a_planted_bug_about_restarts_is_found(name):
    seed, text, _ = hunt(restarts.PLANTS[name], restarts.check)
    assert seed >= 0, text
