"""What the page on architecture names is there: a walk that is out of date misleads whoever audits by it."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "wpinq"
PAGE = (PACKAGE / "docs/architecture.md").read_text()


def test_every_file_and_room_that_it_names_is_there():
    names = set(re.findall(r"`([a-z_/]+/(?:[a-z_]+\.py)?)`", PAGE))
    assert len(names) > 30
    missing = {name for name in names if not (PACKAGE / name).exists() and not (ROOT / name).exists()}
    assert not missing


def test_an_auditor_is_told_how_much_there_is_to_read():
    def lines(paths):
        return sum(len(path.read_text().splitlines()) for path in paths)

    page = (PACKAGE / "docs/auditing.md").read_text()
    core, table = (int(text.replace(",", "")) for text in re.findall(r"(\d+,\d+) lines", page))
    named = {PACKAGE / name for name in re.findall(r"`(core/[a-z_/]+\.py)`", page.partition("| minutes |")[2])}
    assert core == pytest.approx(lines((PACKAGE / "core").rglob("*.py")), rel=0.1)
    assert table == pytest.approx(lines(named), rel=0.1)


def test_every_call_that_it_names_is_there():
    text = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    for name in re.findall(r"`(?:\w+\.)?(Survey|DataSet|Collection|Node|answers|protect|observe)`", PAGE):
        assert re.search(rf"(def|class) {name}\b", text), name


def test_the_picture_shows_every_room_above_what_it_imports(monkeypatch):
    networkx = pytest.importorskip("networkx")
    monkeypatch.setattr(sys, "path", [str(ROOT / ".docs"), *sys.path])
    import room_picture as rooms

    graph = rooms.imports()
    assert networkx.is_directed_acyclic_graph(graph)
    drawn = rooms.drawn()
    assert all(f">{name}</text>" in drawn for name in graph)
    page = type("Page", (), {"file": type("File", (), {"src_uri": "architecture.md"})})
    assert "<svg" in rooms.on_page_markdown(PAGE, page)
