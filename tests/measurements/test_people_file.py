"""The people index as a file: bound to what it is of, there whole or not at all, and nothing depends on it."""

import gc
import re
import signal
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import processes
import pytest
from depth import deeper, often, thin
from hypothesis import given, settings
from hypothesis import strategies as st
from measurements.test_people_index import COLUMNS, FILTERS, ODD, ROWS, UNITS, contents, held_now

import wpinq
from wpinq.core import kernels
from wpinq.core.ledger import Ledger
from wpinq.core.plan.node import sources
from wpinq.core.runs import people_file, people_index, people_parts
from wpinq.core.state.memory import LIMIT

pytestmark = pytest.mark.skipif(kernels.LIB is None, reason="without compiled kernels nothing is indexed")
ROWS_OF_MANY = [(f"user{n % 50}", f"page{n % 7}") for n in range(2000)]
HELD = 20
"""Fewer than the parts that have somebody, of 40."""
USERS = wpinq.users("user", at_most=20)


def views_of(place, rows=ROWS_OF_MANY, index=True, unit=USERS, version="v1", ledger="L", name="views"):
    return wpinq.protect(
        rows, budget=10**6, columns={"user": str, "page": str}, unit=unit, ledger=place / ledger, version=version,
        index=index, name=name,
    )  # fmt: skip


def files(place):
    return sorted(path for path in place.iterdir() if ".people-" in path.name)


def asked(views, name="q", where="page <> 'page1'"):
    return (
        views.filter(where).map("page").measure(10**3, name=name).observe_many([f"page{n}" for n in range(7)]).tolist()
    )


@contextmanager
def small(taken):
    """Memory for some people at a time."""
    room = patch.object(people_parts, "ROOM", 1), patch.object(people_parts, "PARTS", 40)
    with room[0], room[1], patch.object(type(LIMIT), "most", property(lambda _: taken + 10_000)):
        yield


def used(views):
    """Whether a question of this process was read from a file."""
    (index,) = sources(views._node)[0].made["people"].indexes.values()
    return index is not None and index._file is not None


@thin(6)
@pytest.mark.parametrize("filters", FILTERS.values(), ids=FILTERS)
@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
@settings(max_examples=often(6, 2))
@given(rows=ROWS)
def test_samples_are_the_same_from_a_file(unit, filters, rows, tmp_path_factory):
    insist_on_the_same(tmp_path_factory.mktemp("ledger"), rows, unit, filters)


@settings(max_examples=often(10, 3))
@given(rows=st.lists(st.tuples(ODD, ODD), max_size=30))
def test_so_they_are_of_values_of_any_type(rows, tmp_path_factory):
    insist_on_the_same(tmp_path_factory.mktemp("ledger"), rows, wpinq.users("user", at_most=2), [], ["user", "page"])


def insist_on_the_same(place, rows, unit, filters, columns=COLUMNS):
    """Made and used by two processes; so small a limit of memory that it waits on disk, and is read part by part."""
    alone, _ = contents(rows, unit, filters, 10**9, place / "ledger", columns)
    for _ in range(2):
        found, made = contents(rows, unit, filters, 10**9, place / "ledger", columns, index=True)
        assert found == alone
    (index,) = made["people"].indexes.values()
    assert index._file is not None
    assert len(files(place)) == 1
    Ledger.existing(place / "ledger").forget_people()
    with patch.object(type(LIMIT), "most", property(lambda _: 6000)), patch.object(people_parts, "PARTS", 5):
        for _ in range(2):
            found, made = contents(rows, unit, filters, 10**9, place / "ledger", columns, index=True)
            assert found == alone


def test_what_does_not_fit_in_memory_is_read_part_by_part(tmp_path):
    alone = asked(views_of(tmp_path, index=False))
    gc.collect()  # what other tests left
    taken = held_now()
    with small(taken):
        for _ in range(2):
            views = views_of(tmp_path)
            assert asked(views) == alone and used(views)
            (index,) = sources(views._node)[0].made["people"].indexes.values()
            assert index.held is None and len(list(index.parts())) > HELD
            assert asked(views, where="user = 'nobody'") == asked(
                views_of(tmp_path, index=False), where="user = 'nobody'"
            )
    del views, index
    gc.collect()
    assert LIMIT._held == taken


def test_a_question_passes_over_all_parts_of_a_file(tmp_path, monkeypatch):
    """Whether a person is there changes nothing: each part is read, and each text asked."""
    seen = []
    true = people_parts.true
    monkeypatch.setattr(people_parts, "true", lambda step, frame: (seen.append(frame.height), true(step, frame))[1])
    with small(held_now()):
        views = views_of(tmp_path)
        for text in ("user1", "nobody"):
            asked(views, where=f"user = '{text}'")
    half = len(seen) // 2
    assert seen[:half] == seen[half:] and sum(seen[:half]) == 50 and half > HELD


def test_another_process_uses_it_and_it_is_for_its_owner_alone(tmp_path):
    first = views_of(tmp_path)
    alone = asked(views_of(tmp_path, index=False))
    assert asked(first) == alone
    (path,) = files(tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert re.fullmatch(r"L\.people-[0-9a-f]{16}", path.name)
    content = path.read_bytes()
    assert b"user1" not in content and b"page1" not in content
    with patch.object(people_index, "parts", side_effect=AssertionError("made anew")):
        second = views_of(tmp_path)
        assert asked(second) == alone and used(second)
        other = second.at_most(3).filter("user <> 'user1'").map("user").measure(1)
        assert other.observe("user2") is not None


def test_rows_of_the_ledger_and_prices_are_the_same(tmp_path):
    rows = []
    for place, index in ((tmp_path / "with", True), (tmp_path / "without", None)):
        place.mkdir()
        for _ in range(2):
            views = views_of(place, index=index)
            asked(views)
            asked(views, "r", "user = 'nobody'")
        rows.append([(row.kind, row.label, row.epsilon, row.version) for row in Ledger.existing(place / "L").entries()])
    assert rows[0] == rows[1]


def test_it_is_of_one_version_unit_and_ledger(tmp_path):
    """Under any other circumstances a file is not opened, whatever its name is."""
    asked(views_of(tmp_path))
    (path,) = files(tmp_path)
    content = path.read_bytes()
    others = {
        "another version": {"version": "v2"},
        "a unit of the page": {"unit": wpinq.users("page", at_most=20), "ledger": "M"},
        "another ledger": {"ledger": "N"},
        "another table": {"ledger": "O", "name": "visits"},
    }
    for told in others.values():
        views = views_of(tmp_path, **told)
        asked(views)
        (data,) = sources(views._node)
        other = people_file.PeopleFile.of(data)
        assert other.path != path and other.read() is not None
        other.path.write_bytes(content)
        assert other.read() is None


def test_what_others_may_read_is_not_used(tmp_path):
    alone = asked(views_of(tmp_path))
    (path,) = files(tmp_path)
    path.chmod(0o644)
    views = views_of(tmp_path)
    assert asked(views) == alone and not used(views)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600, "it was made anew"


@deeper
def test_a_file_that_was_changed_is_made_anew_and_no_question_fails(tmp_path):
    alone = asked(views_of(tmp_path))
    more = "r", "user <> 'user3'"
    again = asked(views_of(tmp_path, index=False), *more)
    (path,) = files(tmp_path)
    content = path.read_bytes()
    for place in [*range(0, len(content), len(content) // often(400, 8)), len(content) - 1]:
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        views = views_of(tmp_path)
        assert asked(views) == alone and asked(views, *more) == again
        if used(views):  # a piece that no question has read may be as it is
            continue
        assert files(tmp_path) == [path] and path.stat().st_size == len(content)
    for place in range(0, len(content), 997):
        path.write_bytes(content[:place])
        assert asked(views_of(tmp_path)) == alone
        assert path.stat().st_size == len(content)


CHILD = """
import sys, time
from pathlib import Path
import wpinq
from wpinq.core.runs import people_file
sys.path.insert(0, {tests!r})
from measurements.test_people_file import asked, views_of
inner = people_file.Writing.{step}
def slow(self, *given):
    if {step!r} == "end":
        inner(self, *given)
    print("now", flush=True)
    time.sleep(60)
people_file.Writing.{step} = slow
asked(views_of(Path({place!r})))
"""


@thin(3)
@pytest.mark.parametrize("step", ["_keep", "add", "end"])
def test_killed_while_it_is_written_it_is_made_anew(tmp_path, step):
    alone = asked(views_of(tmp_path, index=False))
    tests = str(Path(__file__).parents[1])
    script = CHILD.format(tests=tests, step=step, place=str(tmp_path))
    with processes.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as child:
        killed(child, tmp_path, alone)
    views = views_of(tmp_path)
    assert asked(views) == alone
    (path,) = files(tmp_path)
    assert re.fullmatch(r"L\.people-[0-9a-f]{16}", path.name)
    second = views_of(tmp_path)
    assert asked(second) == alone and used(second)


def killed(child, place, alone):
    """Kill a process that is about to write; until then another one has no file."""
    assert child.stdout.readline() == b"now\n"
    (draft,) = files(place)
    assert draft.name.startswith(".L.people-") and stat.S_IMODE(draft.stat().st_mode) == 0o600
    other = views_of(place)
    assert asked(other) == alone and not used(other), "while another process writes, it is held in memory"
    assert files(place) == [draft]
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL


def test_a_disk_that_is_full_ends_no_question(tmp_path):
    alone = asked(views_of(tmp_path, index=False))
    for step in ("__init__", "add", "end"):
        with patch.object(people_file.Writing, step, side_effect=OSError(28, "full")):
            views = views_of(tmp_path)
            assert asked(views) == alone
        assert files(tmp_path) == []


def test_it_is_forgotten_with_what_a_killed_process_left(tmp_path):
    asked(views_of(tmp_path))
    (path,) = files(tmp_path)
    path.with_name(f".{path.name}.draft").write_bytes(b"half")
    (tmp_path / "L.people-x").write_bytes(b"")
    (tmp_path / "LL.people-x").write_bytes(b"")
    assert Ledger.existing(tmp_path / "L").forget_people() == 3
    assert [one.name for one in files(tmp_path)] == ["LL.people-x"]
    assert Ledger.existing(tmp_path / "L").forget_people() == 0


def test_who_says_no_bounds_people_anew_for_each_question(tmp_path):
    asked(views_of(tmp_path))
    with patch.object(people_file.PeopleFile, "of", side_effect=AssertionError("a file is looked for")):
        views = views_of(tmp_path, index=False)
        for number in range(3):
            asked(views, f"{number}")
    assert "people" not in sources(views._node)[0].made


def test_where_it_would_not_be_used_it_is_refused(tmp_path):
    rows = [("ann", "a")]
    for told, said in (
        ({}, "name people"),
        ({"unit": wpinq.users("user", shared=True)}, "name people"),
        ({"unit": USERS}, "in memory"),
        ({"unit": USERS, "engine": wpinq.processes(2), "ledger": tmp_path / "L"}, "one process"),
    ):
        with pytest.raises(wpinq.PlanError, match=said):
            wpinq.protect(rows, 1, columns=["user", "page"], index=True, **told)
    assert list(tmp_path.iterdir()) == []


def test_a_data_set_that_reads_other_records_has_no_file(tmp_path):
    from dataclasses import replace

    views = views_of(tmp_path)
    asked(views)
    (data,) = sources(views._node)
    other = sources(views_of(tmp_path, rows=[("ann", "a")], version="v2")._node)[0].reader
    assert people_file.PeopleFile.of(data) is not None
    assert people_file.PeopleFile.of(replace(data, reader=other)) is None
