"""A core without extras: everything imports, what needs an extra is refused before it is charged, the rest goes on."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import processes
import pytest

import wpinq as wpinq_
from wpinq.apps.cli import shell
from wpinq.errors import EXTRAS, ExtraError
from wpinq.testing import protected

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
CORE = f"""
import importlib, pkgutil, sys
sys.modules |= dict.fromkeys({sorted({one for names in EXTRAS.values() for one in names})})
import wpinq
from wpinq.core.engines import installed
from wpinq.errors import ExtraError
apart = ("wpinq.__main__", "wpinq.core.kernels.", "wpinq.apps.serve.", "wpinq.tools.")
for module in pkgutil.walk_packages(wpinq.__path__, "wpinq."):
    if not module.name.startswith(apart) and (installed() or "bytewax" not in module.name):
        try:
            importlib.import_module(module.name)
        except ExtraError as error:
            print(module.name, error)
import wpinq.tools.openmetrics, wpinq.tools.polars
"""


@pytest.fixture
def without(monkeypatch):
    """Take a library away, as if it had not been installed."""

    def take(library):
        for name in {library, *(one for one in sys.modules if one.startswith(f"{library}."))}:
            monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.delitem(sys.modules, "wpinq.postprocess.picture", raising=False)

    return take


def test_the_core_imports_without_extras():
    assert processes.printed("-c", CORE, fresh=True) == (
        "wpinq.postprocess.picture drawing: there is no matplotlib; pip install 'wpinq[plot]' brings it.\n"
    )


def test_extras_bring_what_is_looked_for():
    extras, core = PROJECT["optional-dependencies"], " ".join(PROJECT["dependencies"])

    def brought(extra):
        text = " ".join(extras[extra]).replace("-", "_")
        return text + " ".join(brought(one) for one in re.findall(r"\w+", "".join(re.findall(r"wpinq\[(.*?)\]", text))))

    for extra, names in EXTRAS.items():
        assert not [name for name in names if name not in brought(extra) or name in core], extra
    tried_apart = {"audit", "mbi", "openlineage", "dagster", "dbt", "airflow", "docs", "peers", "dev", "spark"}
    assert set(re.search(r"wpinq\[(.*?)\]", extras["dev"][0])[1].split(",")) == set(extras) - tried_apart


@pytest.mark.parametrize(
    ("library", "extra", "arguments"),
    [
        ("matplotlib", "plot", ["degrees", "views.csv", "--of", "page", "--plot", "fit.png"]),
        ("matplotlib", "plot", ["graph", "views.csv", "--plot", "fit.png"]),
        ("networkx", "graphs", ["graph", "views.csv"]),
        ("sqlglot", "sql", ["sql", "SELECT COUNT(*) FROM views", "--from", "views=views.csv", "--epsilon", "1"]),
    ],
)
def test_refused_before_it_is_charged(wpinq, views, tmp_path, listing, monkeypatch, without, library, extra, arguments):
    monkeypatch.chdir(tmp_path)
    without(library)
    before = listing(tmp_path)
    refused = wpinq(*arguments, "--budget", "1", "--ledger", "ledger").refused()
    assert f"there is no {library}; pip install 'wpinq[{extra}]' brings it" in refused
    assert listing(tmp_path) == before


def test_expressions_in_sql_are_refused_too(without):
    without("sqlglot")
    with pytest.raises(ExtraError, match=re.escape("wpinq[sql]")):
        protected(page="text").filter("page = 'home'")
    assert protected(page="text").map("page").columns == ("page",)


def test_a_notebook_goes_on_without_pictures(without):
    fit = wpinq_.degrees.reconcile([2.0], [1.0, 1.0], scales=(1, 1))
    without("matplotlib")
    assert "No picture: there is no matplotlib" in fit._repr_html_()
    with pytest.raises(ExtraError, match=re.escape("wpinq[plot]")):
        fit.plot()


def test_a_plain_prompt(without, monkeypatch, capsys):
    without("prompt_toolkit")
    typed = iter(["pages home", KeyboardInterrupt, "quit", EOFError])

    def answer(_):
        line = next(typed)
        if isinstance(line, str):
            return line
        raise line

    monkeypatch.setattr("builtins.input", answer)
    assert list(shell.lines(None)) == ["pages home", "quit"]
    assert "wpinq[shell]" in capsys.readouterr().err
