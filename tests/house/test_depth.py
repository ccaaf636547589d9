"""The plain run and the deep one: together they are all tests, and the second repeats none in full."""

from pathlib import Path
from types import SimpleNamespace

import depth
import pytest


class Item(SimpleNamespace):
    def get_closest_marker(self, name):
        return self.marks.get(name)


def item(name, hypothesis=False, **marks):
    body = SimpleNamespace(hypothesis=None) if hypothesis else SimpleNamespace()
    marks = {one: SimpleNamespace(args=given) for one, given in marks.items()}
    return Item(nodeid=name, obj=body, marks=marks, path=Path(__file__))


ITEMS = [
    item("a"),
    item("b", deep=()),
    item("c", deeper=()),
    item("d", hypothesis=True),
    *(item(f"e[{number}]", thin=(3,)) for number in range(7)),
    *(item(f"f[{number}]", thin=(3,), deeper=()) for number in range(4)),
]


@pytest.mark.parametrize(("way", "wanted"), [
    ("same", "a c d e[0] e[3] e[6] f[0] f[3]"),
    ("deep", "b c d e[1] e[2] e[4] e[5] f[0] f[1] f[2] f[3]"),
    ("all", " ".join(one.nodeid for one in ITEMS)),
    ("search", " ".join(one.nodeid for one in ITEMS)),
])  # fmt: skip
def test_each_way_takes_its_own(monkeypatch, way, wanted):
    monkeypatch.setattr(depth, "WAY", way)
    taken, left = depth.chosen(ITEMS)
    assert " ".join(one.nodeid for one in taken) == wanted
    assert {one.nodeid for one in [*taken, *left]} == {one.nodeid for one in ITEMS} and len(taken + left) == len(ITEMS)


@pytest.mark.parametrize("marks", [{"deep": ()}, {"deeper": ()}, {"thin": (1,), "deeper": ()}, {"hypothesis": True}])
def test_a_deeper_test_in_a_file_that_the_deep_run_does_not_read_is_told(marks, tmp_path):
    found = item("a", **marks)
    assert depth.chosen([found])
    found.path = tmp_path / "test_plain.py"
    found.path.write_text("import pytest\n")
    with pytest.raises(RuntimeError, match="the deep run reads no file"):
        depth.chosen([found])
    assert depth.chosen([item("a")]), "what the plain run takes in full may be anywhere"


@pytest.mark.parametrize("way", ["same", "deep"])
def test_a_test_that_the_deep_run_would_miss_is_told(monkeypatch, way):
    monkeypatch.setattr(depth, "WAY", way)
    for found in (item("a"), item("b", thin=(2,))):
        monkeypatch.setattr(depth, "running", [found])
        with pytest.raises(RuntimeError, match="@deeper"):
            depth.often(100)
    for found in (item("c", deeper=()), item("d", hypothesis=True)):
        monkeypatch.setattr(depth, "running", [found])
        assert depth.often(100) == (100 if depth.DEEP else 12)


def test_how_many_are_taken(monkeypatch):
    monkeypatch.setattr(depth, "running", [])
    monkeypatch.setattr(depth, "DEEP", False)
    assert [depth.often(times) for times in (1, 4, 5, 40, 100)] == [1, 4, 5, 5, 12] and depth.often(50, 12) == 12
    monkeypatch.setattr(depth, "DEEP", True)
    assert depth.often(100) == 100 and depth.often(50, 12) == 50


def test_no_module_looks_at_the_depth_but_by_marks():
    """`DEEP` in a test without the mark would be missed: who reads it has `deeper` at hand."""
    readers = []
    for path in Path(__file__).parents[1].rglob("*.py"):
        names = path.read_text().partition("from depth import ")[2].partition("\n")[0].split(", ")
        if "DEEP" in names and "deeper" not in names:
            readers.append(path)
    assert readers == []
