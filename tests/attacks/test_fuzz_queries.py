"""Random SQL on neighbours: few cases here, `python -m attacks.fuzz --of queries` goes on."""

import pytest
from attacks.fuzz import queries
from depth import deeper, often


@deeper
@pytest.mark.parametrize("first", [0, 8])
def test_nothing_but_histograms_differs_between_neighbours(first):
    for seed in range(first, first + often(8)):
        assert not queries.FUZZER.wrong(seed)
