"""The week of a site is told as it is: what was published, held, changed and refused, and what is left."""

import processes
from depth import deep


@deep
def test_a_week_of_a_site(tmp_path):
    said = processes.printed("-W", "error", "-m", "examples.publishing_week", tmp_path / "new", fresh=True)
    assert "the budget lasts for 6 days" in said
    assert said.count(": published\n") == 6
    assert "2026-03-05: was published before" in said
    assert "HeldError: 2026-03-06: held back: views: views sums to about" in said  # noise explains it below 1e-8
    assert "for the curator: 2026-03-06" in said
    assert "BudgetError" in said
    assert "2026-03-02 computed anew: the same" in said
    assert "2026-03-08 refused" in said
