"""A plugin for pytest: a Python that is newer than this wpinq, so that nothing is known of bytecode.

`pytest -p unknown_python tests/contracts` runs the contracts in it (`.ci/newer-python`).
"""

from wpinq.core.functions.code import bytecode

RECORDED = "test_recorded_answers.py"
"""Noise that was recorded: where functions are opaque each question is new, with noise of its own."""
NAMED = ("test_plans_on_changes", "test_every_use_is_paid")
"""Plans whose lambdas pass columns on and later steps name them: outputs that nothing is known of are `value`."""


def pytest_configure(config):
    bytecode.NEWEST = (3, 10)
    config.addinivalue_line("filterwarnings", "ignore:this Python is newer than this wpinq")


def pytest_collection_modifyitems(config, items):
    left = [item for item in items if item.path.name == RECORDED or item.name.partition("[")[0] in NAMED]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]
