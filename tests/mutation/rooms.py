"""The rooms that carry the guarantee, and the tests that watch over each."""

from __future__ import annotations

from typing import NamedTuple


class Room(NamedTuple):
    """Modules and their tests, as patterns from the root of the project."""

    files: list[str]
    tests: list[str]


ROOMS = {
    "noise": Room(
        ["wpinq/core/noise/*.py"],
        ["tests/noise/test_*.py", "tests/measurements/test_selection*.py", "tests/measurements/test_continual*.py"],
    ),
    "ledger": Room(
        ["wpinq/core/ledger/*.py"],
        ["tests/ledger/test_*.py", "tests/attacks/test_attack_budget.py", "tests/attacks/test_attack_commits.py"],
    ),
    "stability": Room(
        ["wpinq/core/plan/stability.py", "wpinq/core/plan/person_bound.py", "wpinq/core/plan/forms.py",
         "wpinq/core/pricing/sensitivity.py"],
        ["tests/contracts/test_contracts.py", "tests/attacks/test_joint_loss.py", "tests/attacks/test_attack_bounds.py",
         "tests/attacks/test_attack_weights.py", "tests/measurements/test_explain.py",
         "tests/measurements/test_selection_spread.py", "tests/measurements/test_selection_threshold.py"],
    ),
    "operators": Room(
        ["wpinq/core/operators/*.py", "wpinq/core/operators/contribution/*.py"],
        ["tests/operators/test_*.py", "tests/contracts/test_*.py", "tests/measurements/test_selection_spread.py"],
    ),
}  # fmt: skip
SHARE = {"noise": 0.25, "ledger": 0.25, "stability": 0.125, "operators": 0.375}
"""Of the faults that are drawn."""
