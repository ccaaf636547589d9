"""The faults of `tests/mutation` can still be put in: the code that they replace is there, and what finds them too."""

import re
from pathlib import Path

import pytest
from mutation.mutants import mutants
from mutation.plants import PLANTS, RECORD_PLAY, RULES, STORES
from mutation.rooms import ROOMS, SHARE

from wpinq.testing.checks import plants, run
from wpinq.testing.checks.plants import planted

ROOT = Path(__file__).parents[2]
ATTACKS = ("wpinq/docs/auditing.md", "wpinq/docs/attacks.md")


@pytest.mark.parametrize("name", PLANTS)
def test_a_plant_fits_the_code_and_its_test_is_there(name):
    plant = PLANTS[name]
    compile(planted(ROOT, plant), plant.file, "exec")
    file, _, test = plant.test.partition("::")
    assert (ROOT / file).exists()
    assert not test or f"def {test}(" in (ROOT / file).read_text()


def test_plants_that_are_shipped_fit_the_code_and_every_check_has_one():
    for plant in plants.PLANTS.values():
        compile(planted(run.PACKAGE, plant), plant.file, "exec")
    assert {plant.check for plant in plants.PLANTS.values()} == set(run.CHECKS)


def test_pages_say_how_many_plants_there_are():
    pages = {name: " ".join((ROOT / name).read_text().split()) for name in ("README.md", *ATTACKS)}
    assert f"; {len(PLANTS)} planted faults" in pages["README.md"]
    assert f"all {len(PLANTS)} without a name" in pages["wpinq/docs/auditing.md"]
    told = f"`--plants`: {len(PLANTS)} faults by name, each found by one named test: {len(RECORD_PLAY)} of the classes"
    assert told in pages["wpinq/docs/attacks.md"]
    assert (
        f"one for each of {len(RULES)} privacy rules, and {len(STORES)} wrong stores" in pages["wpinq/docs/attacks.md"]
    )


def test_every_rule_has_a_plant():
    assert {int(number) for number in RULES} == set(range(1, 48))


def test_what_finds_old_bugs_is_there():
    named = re.findall(r"`(test_[a-z0-9_]+)`", (ROOT / "tests" / "mutation" / "README.md").read_text())
    there = {
        name for path in (ROOT / "tests").rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    assert named
    assert set(named) <= there


def test_rooms_have_files_and_tests():
    assert sum(SHARE.values()) == 1
    for room in ROOMS.values():
        assert all(any(ROOT.glob(pattern)) for pattern in (*room.files, *room.tests))


def test_a_mutant_differs_by_one_expression():
    found = mutants(ROOT, "wpinq/core/noise/words.py")
    assert len({one.source for one in found}) > 20
    assert any("low >> guard != high >> guard" in one.source for one in found)
