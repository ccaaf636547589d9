"""What all fuzzers have in common: the command line, searches by CPU time, and their bugs that are put back."""

import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
from attacks.fuzz import fuzzer as module
from attacks.fuzz.__main__ import NAMES, main, named
from attacks.fuzz.fuzzer import Fuzzer, spent
from attacks.fuzz.plant import Plant
from depth import deep, thin

SLOW = {"together", "passes", "all_of_people", "first_again"}
"""Plants whose cases take over five seconds."""
SECONDS = {"cases": 30, "streams": 10, "served": 20}
"""Less time than others, for their cases take less: about a hundred are tried."""
MOVE = {"cases", "zones", "restarts", "streams"}
"""Fuzzers whose cases depend on what they run, on the computer's zones or on secrets: another case may find a plant."""


def used():
    return 1


def aside():
    return 1


HERE = sys.modules[__name__]
PLANTS = {
    "found": Plant("what is used", lambda: [patch.object(HERE, "used", lambda: 2)], 5, "A"),
    "other": Plant("it is found by another check", lambda: [patch.object(HERE, "used", lambda: 2)], 5, "B"),
    "stale": Plant("one of two names is used", lambda: [patch.object(HERE, "used", lambda: 2),
                                                      patch.object(HERE, "aside", lambda: 2)], 5),
}  # fmt: skip


def judged(case):
    return ["A it is odd"] if case % 2 and used() > 1 else []


ODD = Fuzzer("odd", int, judged, PLANTS, themes=("some",))


def test_a_bug_is_found_by_the_checks_that_are_named_and_by_names_that_are_used():
    assert ODD.hunt("found")[:2] == (5, "A it is odd")
    assert ODD.hunt("other", seconds=0)[:2] == (-1, "not found")
    assert ODD.hunt("stale")[:2] == (-1, "it patches aside, which nothing uses any more")


def test_a_bug_that_is_there_without_its_plant_is_not_found_by_it():
    always = Fuzzer("always", int, lambda case: ["A"], {"one": PLANTS["found"]})
    assert always.hunt("one", seconds=0)[:2] == (-1, "not found")


def test_bugs_that_are_put_back_are_listed(capsys):
    assert ODD.put_back(["found"]) == 0
    with patch.object(ODD.hunt.__func__, "__defaults__", (0,)):
        assert ODD.put_back(ODD.plants) == 1
    assert [line.split()[:3] for line in capsys.readouterr().out.splitlines()] == [
        ["found", "case", "5"], ["found", "case", "5"], ["other", "case", "-1"], ["stale", "case", "-1"],
    ]  # fmt: skip


def test_a_search_ends_by_cpu_time_and_says_what_can_be_recorded(capsys, monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr(module, "spent", lambda: next(clock))
    two = Fuzzer("two", lambda seed, theme="": seed, lambda case: ["A two"] if case == 2 else [], {}, seen={"pairs": 9})
    assert two.search(1, 4 / 60, "some") == 1
    out = capsys.readouterr().out
    assert "\n== python -m attacks.fuzz --of two --case 2 --theme some\nA two\n2\n" in out
    assert out.splitlines()[-2:] == [
        "3 cases, 9 pairs, 1 with findings, 5 CPU seconds", "rate\ttwo\tsome\t1-3\t3\t5.0",
    ]  # fmt: skip


def test_every_tenth_case_is_tried_in_the_slow_way(capsys, monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr(module, "spent", lambda: next(clock))
    both = Fuzzer("both", int, lambda case: [], {}, slow=lambda case: [f"slow {case}"])
    assert both.search(0, 20 / 60) == 1
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("slow")] == ["slow 9"]
    assert (both.look(19), both.look(20)) == (1, 0)


def test_the_time_of_children_is_counted():
    before = spent()
    busy = "import time\nwhile time.process_time() < 0.5: pass"
    subprocess.run([sys.executable, "-c", busy], check=True)
    assert spent() - before > 0.4


@thin(6)
@pytest.mark.parametrize(("of", "name"), [
    pytest.param(of, name, marks=[pytest.mark.slow, deep] if name in SLOW else [])
    for of in NAMES for name in sorted(named(of).plants)
])  # fmt: skip
def test_a_bug_that_is_put_back_is_found(of, name):
    found, first = named(of).hunt(name, seconds=SECONDS.get(of, 60)), named(of).plants[name].seed
    assert found.seed == first or (of in MOVE and found.seed >= 0), found


def test_each_fuzzer_is_known_by_its_name():
    assert [named(name).name for name in NAMES] == list(NAMES)


def test_only_the_fuzzer_that_is_asked_for_is_imported():
    code = "import sys; from attacks.fuzz.__main__ import named; named('lengths'); print(*sys.modules)"
    place = Path(__file__).parents[1]
    found = subprocess.run([sys.executable, "-c", code], cwd=place, capture_output=True, text=True, check=True).stdout
    there = {one.removeprefix("attacks.fuzz.") for one in found.split() if one.startswith("attacks.fuzz.")}
    assert there & set(NAMES) == {"lengths"}


@pytest.mark.parametrize(("words", "told"), [
    ("--theme none", "the themes of cases are: dates, "),
    ("--of lengths --theme gain", "the themes of lengths are: none"),
    ("--plant none", "the plants of cases are: columns_differ, "),
])  # fmt: skip
def test_names_that_nothing_has_are_refused(words, told, capsys):
    with pytest.raises(SystemExit):
        main(words.split())
    assert told in capsys.readouterr().err
