"""Every block of the README runs. Setting up an environment is what has already happened when a test runs."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+) ?([\w-]*)\n(.*?)```", TEXT, re.DOTALL)
PYTHON = [text for language, _, text in BLOCKS if language == "python"]
SHELL = {name: text.strip() for language, name, text in BLOCKS if language == "bash"}


def steps(name):
    """The commands of a block, without those that make the environment."""
    parts = [part.strip() for part in SHELL[name].split("&&")]
    return [part for part in parts if " -m venv " not in f" {part} " and " pip " not in f" {part} "]


@pytest.fixture
def workplace(tmp_path):
    for name in ("examples", "dataflows"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    made = [sys.executable, "-m", "examples.sample", "out/views.csv"]
    subprocess.run(made, cwd=tmp_path, check=True, capture_output=True)
    return tmp_path


def test_every_block_is_known():
    assert {language for language, _, _ in BLOCKS} == {"python", "bash"}
    assert set(SHELL) == {"setup-and-run", "setup-and-test"}, "two commands for a fresh machine"
    assert len(PYTHON) == 1


def test_the_first_screen_says_what_it_is():
    lines = TEXT.splitlines()
    assert len(lines) <= 90
    first = next(line for line in lines if line and not line.startswith("#"))
    assert "differential privacy" in first


def test_python_blocks_run_one_after_another(workplace, monkeypatch):
    monkeypatch.chdir(workplace)
    names = {}
    for text in PYTHON:
        exec(compile(text, "README.md", "exec"), names)
    assert Path("out/degrees.png").stat().st_size > 1000
    assert Path("out/synthetic.parquet").stat().st_size > 1000


def run(name, workplace):
    """Run the commands of a block."""
    for step in steps(name):
        command = step.replace(".venv/bin/python", sys.executable)
        command = command.replace(".venv/bin/wpinq", f"{sys.executable} -m wpinq")
        done = subprocess.run(shlex.split(command), cwd=workplace, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_main_job_runs(workplace):
    run("setup-and-run", workplace)
    for made in ("degrees.json", "degrees.png", "synthetic.parquet"):
        assert (workplace / "out" / made).stat().st_size > 1000


def test_ci_calls_exactly_the_test_command():
    assert steps("setup-and-test") == [".venv/bin/python -m pytest -q -n 3"]
    assert "setup-and-test" in (ROOT / ".ci" / "run").read_text()
