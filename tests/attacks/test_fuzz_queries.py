"""Random SQL on neighbours: few cases here, `python -m attacks.fuzz.queries` goes on."""

import pytest
from attacks.fuzz import queries
from depth import often


@pytest.mark.parametrize("first", [0, 8])
def test_nothing_but_histograms_differs_between_neighbours(first):
    for seed in range(first, first + often(8)):
        assert not queries.judge(seed), f"python -m attacks.fuzz.queries --case {seed}"


@pytest.mark.parametrize("plant", sorted(queries.PLANTS))
def test_an_old_bug_is_found_when_it_is_back(plant):
    seed = queries.FUZZER.seeds[plant]
    with queries.PLANTS[plant]():
        assert queries.judge(seed)
    assert not queries.judge(seed)
