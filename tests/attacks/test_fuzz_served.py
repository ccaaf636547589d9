"""Servers with and without one privacy unit, asked the same; `python -m attacks.fuzz --of served` draws others.

Nothing here is statistical: what may not differ is compared exactly.
"""

import pytest
from attacks.fuzz import served, served_steps
from depth import thin

from wpinq.apps.serve.app import OPERATIONS


def test_every_operation_is_asked():
    assert {one.handler.__name__ for one in OPERATIONS} == set(served_steps.OPERATIONS)


@thin(10)
@pytest.mark.parametrize("seed", range(40, 60))
def test_no_answer_status_or_count_tells_a_unit(seed):
    assert not served.FUZZER.wrong(seed)
