"""Files and streams with and without one unit, from fixed seeds; `python -m attacks.fuzz --of NAME` draws others."""

import pytest
from attacks.fuzz import readers, streams
from depth import deeper, often, thin

FUZZERS = {"readers": readers.FUZZER, "streams": streams.FUZZER}


@deeper
@thin(4)
@pytest.mark.parametrize("first", range(0, 120, 30))
@pytest.mark.parametrize("of", sorted(FUZZERS))
def test_nothing_but_the_unit_itself_differs(of, first):
    fuzzer = FUZZERS[of]
    for seed in range(first, first + often(30)):
        assert not fuzzer.wrong(seed)
