"""Calls that are nearly right, or hostile, over HTTP; `python tests/benchmarks/fuzz_agents.py` sends 100,000."""

from depth import deeper, often
from fuzz_agents import fuzz


@deeper
def test_none_fails_inside_and_none_pays_beyond_a_cap_or_too_often(tmp_path):
    calls = often(3_000, 100)
    said, wrong = fuzz(tmp_path, calls)
    assert not wrong
    assert said.total() == calls and {"answered", "refused by cap", "refused by arguments"} <= set(said)
