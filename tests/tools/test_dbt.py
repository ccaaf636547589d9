"""A dbt project whose source is a private answer, built by dbt; the page's own blocks; run by .ci/tools."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("dbt.adapters.duckdb", reason="dbt-duckdb is not installed; .ci/tools tries it")
import duckdb
import yaml

import wpinq
from wpinq.tools.dbt import Plugin

PAGE = Path(wpinq.__file__).parent / "docs" / "tools.md"
PLUGINS, SOURCES = (
    yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
)


@pytest.fixture
def project(tmp_path):
    """The project of the page, with one model that reads the source."""
    rows = [f"u{number % 600},p{number % 3}" for number in range(6000)]
    (tmp_path / "views.csv").write_text("\n".join(["user,page", *rows]) + "\n")
    home = {"type": "duckdb", "path": "site.duckdb", **PLUGINS}
    (tmp_path / "profiles.yml").write_text(yaml.safe_dump({"site": {"target": "dev", "outputs": {"dev": home}}}))
    (tmp_path / "dbt_project.yml").write_text(yaml.safe_dump({"name": "site", "version": "1.0.0", "profile": "site"}))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "sources.yml").write_text(yaml.safe_dump({"version": 2, **SOURCES}))
    (tmp_path / "models" / "popular.sql").write_text("SELECT * FROM {{ source('private', 'page_views') }}\n")
    return tmp_path


def dbt(project, *words):
    call = f"from dbt.cli.main import cli; cli({[*words, '--no-send-anonymous-usage-stats']!r})"
    return subprocess.run([sys.executable, "-c", call], cwd=project, capture_output=True, text=True, check=False)


def built(project):
    with duckdb.connect(project / "site.duckdb", read_only=True) as connection:
        return connection.sql("SELECT * FROM popular ORDER BY page").fetchall()


def test_a_model_reads_a_private_answer_that_is_charged_once(project):
    done = dbt(project, "build")
    assert done.returncode == 0, done.stdout + done.stderr
    (asked,) = (table["meta"] for table in SOURCES["sources"][0]["tables"])
    config = PLUGINS["plugins"][0]["config"]
    views = wpinq.protect(
        project / "views.csv", ledger=project / "ledger", unit=wpinq.users(**config["unit"]), budget=config["budget"]
    )
    assert views.left == config["budget"] - asked["epsilon"]
    same = wpinq.sql(asked["sql"], {"data": views}, epsilon=asked["epsilon"], delta=asked["delta"])
    assert built(project) == sorted(same.frame.rows()) and len(same.frame) == 3
    assert dbt(project, "build").returncode == 0 and views.left == config["budget"] - asked["epsilon"]


def test_the_documentation_shows_the_price_that_is_charged(project):
    assert dbt(project, "docs", "generate").returncode == 0
    found = json.loads((project / "target" / "manifest.json").read_text())["sources"]["source.site.private.page_views"]
    assert found["meta"]["epsilon"] == 1 and found["meta"]["delta"] == "1e-6"
    assert wpinq.budget(project / "ledger").spent == 1


@pytest.mark.parametrize(("config", "why"), [
    ({"budgets": 4}, "config takes no budgets; it takes source, budget"),
    ({"unit": {"colum": "user"}}, "unit takes no colum; it takes column, at_most"),
    ({"unit": "user"}, "unit is a mapping"),
])  # fmt: skip
def test_what_a_config_has_beside_what_is_taken_is_named(config, why):
    """It failed with a TypeError that asked for a report."""
    with pytest.raises(wpinq.PlanError, match=why):
        Plugin.__new__(Plugin).initialize({"source": "views.csv", "ledger": "ledger", **config})


@pytest.mark.parametrize(("asked", "why"), [
    ({"sql": "SELECT user FROM data", "epsilon": 1}, "would show records"),
    ({"sql": "SELECT COUNT(*) FROM data", "epsilon": 5}, "nothing was charged"),
])  # fmt: skip
def test_what_cannot_be_asked_is_refused_in_one_sentence(project, asked, why):
    file = project / "models" / "sources.yml"
    given = yaml.safe_load(file.read_text())
    given["sources"][0]["tables"][0]["meta"] = {"plugin": "wpinq", **asked}
    file.write_text(yaml.safe_dump(given))
    done = dbt(project, "build")
    assert done.returncode and why in done.stdout
    assert not (project / "ledger").exists() or wpinq.budget(project / "ledger").spent == 0
