"""What a notebook shows: no more than `repr` may tell, all text escaped; and the example notebook runs."""

import os
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from depth import deep

import wpinq
from wpinq import progress
from wpinq.postprocess.degrees.fit import Fit
from wpinq.testing import protected

EVIL = '<script>alert(1)</script>&"'
NOTEBOOK = Path(__file__).parents[2] / "examples" / "things_that_count.ipynb"
BAR = """
from wpinq import progress
progress.BAR_DELAY = 0
shown = progress._Cell("<b>reading</b>", 10)
shown.update(5)
with progress.bar("reading", 10) as update:
    update(10)
"""


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found, self.text = set(), ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data):
        self.text += data


def views(path, rows):
    path.write_text("".join(f"{row}\n" for row in [f'user,"{EVIL.replace(chr(34), chr(34) * 2)}"', *rows]))
    unit = wpinq.users("user", at_most=3)
    ledger = path.with_suffix(".ledger")
    return wpinq.protect(path, budget=4, unit=unit, name=EVIL, version="first", ledger=ledger, delta=1e-3)


def faces(path, rows):
    """What is shown of everything that was not computed yet."""
    found = views(path, rows)
    pages = found.map(pl.col(EVIL))
    quote = pages.quote(epsilon=1, name=EVIL)
    made = pages.measure(quote=quote)
    path.unlink()  # nothing is read by showing
    return [one._repr_html_() for one in (found, pages, quote, made, found.budget)]


def test_what_is_shown_before_an_answer_is_of_plans_and_ledgers_alone(tmp_path):
    one = faces(tmp_path / "a.csv", ["ann,secretpage"] * 5)
    two = faces(tmp_path / "b.csv", ["bob,p"] * 500)
    assert one == two
    collection, pages, quote, made, budget = one
    assert "stability 1 in all" in pages and "3 / epsilon" in pages and "at most 3 records" in collection
    assert "scale 3" in made and "by at most 9 with probability 95%" in made and "left" in quote
    assert 'class="gauge"' in budget and "3 of 4 is left" in budget
    for shown in one:
        read = Tags(shown)
        assert not read.found & {"script", "img", "b"} and EVIL in read.text


def test_answers_and_fits_are_escaped_and_drawn(monkeypatch):
    """The picture itself is drawn in the example's kernel."""
    monkeypatch.setattr(Fit, "plot", lambda fit: SimpleNamespace(_repr_png_=lambda: b"\x89PNG"))
    rows = [(EVIL, number) for number in range(60)]
    pages = wpinq.protect(rows, 10**6, columns={"page": str, "n": int}, name=EVIL, delta=0.1).map("page")
    table = Tags(pages.measure(10**4).release(delta=0.01)._repr_html_())
    assert "script" not in table.found and "table" in table.found and table.text.count(EVIL) >= 2
    fit = wpinq.degrees.release(pages, epsilon=10**4)
    shown = fit._repr_html_()
    assert "data:image/png;base64," in shown and "Fit of 1 items, 60 records" in Tags(shown).text


def test_names_are_completed_in_brackets():
    records = protected([("nl", "a")] * 9, country="text", page="text")
    plan = wpinq.plan_budget({"one": records, "two": records}, epsilon=1)
    assert plan._ipython_key_completions_() == ["one", "two"]
    nodes = wpinq.degrees.release(records.map("country, page"), 1, by="country", nodes=["nl", "de"])
    assert set(nodes._ipython_key_completions_()) == {(), "nl", "de"}
    assert all(nodes[name] is not None for name in nodes._ipython_key_completions_())


def test_a_bar_is_shown_in_a_notebook_in_percents(monkeypatch):
    shown = []
    handle = SimpleNamespace(update=shown.append)
    fake = SimpleNamespace(HTML=str, display=lambda first, display_id: shown.append(first) or handle)
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1)))
    monkeypatch.setattr(progress, "BAR_DELAY", -1)
    with progress.bar("<reading>", 1000) as update:
        for _ in range(10):
            update(1)
        update(500)
    assert [text.partition('value="')[2].partition('"')[0] for text in shown] == ["0", "1", "51", ""]
    assert "&lt;reading&gt;" in shown[0] and "<reading>" not in shown[0]


def test_a_terminal_of_ipython_is_no_notebook(monkeypatch):
    for shell in (None, SimpleNamespace()):
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda shell=shell: shell))
        with progress.bar("reading", 10) as update:
            assert update is None


@deep
def test_the_example_runs_and_holds_no_outputs(tmp_path, monkeypatch):
    """In a kernel of its own, where a bar is shown as well."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(NOTEBOOK.parents[1]), *filter(None, [os.getenv("PYTHONPATH")])])
    )
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    book = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(book)
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in cells)
    book.cells.append(nbformat.v4.new_code_cell(BAR))
    nbclient.NotebookClient(book, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = ["".join(str(one.get("data", one.get("text", ""))) for one in cell.outputs) for cell in book.cells
             if cell.cell_type == "code"]  # fmt: skip
    assert "Protected collection" in shown[1] and "gauge" in shown[-3] and "image/png;base64" in "".join(shown)
    assert 'value="50"' in shown[-1] and 'value="100"' not in shown[-1] and "&lt;b&gt;" in shown[-1]
