"""Pages of the documentation: each block runs, each command that is shown exists, everything public is listed."""

import importlib
import json
import re
import subprocess
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from copied_commands import commands

import wpinq
from examples import sample
from wpinq import aggregates, degrees, graphs, testing
from wpinq.apps.cli.app import app
from wpinq.core import methods

ROOT = Path(__file__).parents[2]
DOCUMENTS = ROOT / "wpinq" / "docs"
SITE = (ROOT / ".docs" / "mkdocs.yml").read_text()
LOG = '10.0.0.{host} - - [0{day}/{month}/2026:09:{minute:02}:00 +0000] "GET {page} HTTP/1.1" 200 512 "-" "Mozilla"\n'
PAGES = ["/", "/", "/about", "/news?from=mail", "/static/a.css"]


def blocks(page, *languages):
    found = re.findall(r"^```(\w+)[^\n]*\n(.*?)^```", (DOCUMENTS / page).read_text(), re.DOTALL | re.MULTILINE)
    return [(language, text) for language, text in found if language in languages]


def pages(*languages):
    return [path.name for path in sorted(DOCUMENTS.glob("*.md")) if blocks(path.name, *languages)]


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A directory with what pages speak of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    sample.write(Path("views.csv"))
    for month in ("Jun", "Jul"):
        lines = [
            LOG.format(
                host=number % 251, day=1 + number % 9, month=month, minute=number % 60, page=PAGES[number % 7 % 5]
            )
            for number in range(2000)
        ]
        Path({"Jun": "june.log", "Jul": "july.log"}[month]).write_text("".join(lines))
    with commands(tmp_path / "bin"):
        yield


@pytest.mark.parametrize("page", pages("python", "bash"))
def test_blocks_run_one_after_another(page, workplace):
    names = {}
    for language, text in blocks(page, "python", "bash"):
        if language == "python":
            exec(compile(text, page, "exec"), names)
        else:
            done = subprocess.run(text, shell=True, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            assert page != "answers.md" or "Page 2" in done.stdout, "SQL on the command line is answered"


@pytest.mark.parametrize("page", pages("py", "toml", "json"))
def test_what_is_only_shown_is_well_formed(page):
    read = {"py": lambda text: compile(text, page, "exec"), "toml": tomllib.loads, "json": json.loads}
    for language, text in blocks(page, *read):
        read[language](text)


def shown_commands(text):
    """The command lines of a block, those with a backslash at the end in one."""
    for line in text.replace("\\\n", " ").splitlines():
        yield from re.findall(r"(?:^|\s)wpinq ([^|#;&]+)", line)


@pytest.mark.parametrize("page", pages("sh", "bash"))
def test_every_command_and_option_that_is_shown_exists(page):
    for _, text in blocks(page, "sh", "bash"):
        for line in shown_commands(text):
            command, words = typer.main.get_command(app), line.split()
            while words and hasattr(command, "commands"):
                command = command.get_command(None, words.pop(0))
            known = {option for parameter in command.params for option in parameter.opts + parameter.secondary_opts}
            unknown = {word for word in words if re.match(r"--?[a-z]", word)} - known - {"--help"}
            assert not unknown, (line, unknown)


def test_the_page_of_commands_has_every_command_and_option(monkeypatch):
    """It is written from them when the site is built: no command is left out, and none is said to do nothing."""
    monkeypatch.syspath_prepend(ROOT / ".docs")
    commands = importlib.import_module("commands")
    page = SimpleNamespace(file=SimpleNamespace(src_uri=commands.PAGE))
    parts = re.split(r"^#+ wpinq (.+)$", commands.on_page_markdown("", page), flags=re.MULTILINE)
    told = dict(zip(parts[1::2], parts[2::2], strict=True))

    def walked(group, *words):
        for name in group.list_commands(None):
            command = group.get_command(None, name)
            text = told.pop(" ".join([*words, name]))
            assert text.split("- `")[0].strip(), name
            if hasattr(command, "list_commands"):
                walked(command, *words, name)
            else:
                shown = [one for one in command.params if not getattr(one, "hidden", False)]
                options = {option for one in shown for option in one.opts if option.startswith("-")}
                assert options <= set(re.findall(r"(?<=[` ])--?[\w-]+", text)), name
                assert text.count("\n- `") == len(shown), name

    walked(typer.main.get_command(app))
    assert not told and (DOCUMENTS / commands.PAGE).exists() and "commands.py" in SITE


def test_no_language_is_unknown():
    found = re.findall(r"^```(\w+)", "".join(path.read_text() for path in DOCUMENTS.glob("*.md")), re.MULTILINE)
    assert set(found) <= {"python", "bash", "sh", "py", "toml", "ini", "bibtex", "yaml", "crontab", "json"}


def test_the_site_has_every_page():
    assert set(re.findall(r"([\w-]+\.md)$", SITE, re.MULTILINE)) == {path.name for path in DOCUMENTS.glob("*.md")}


def test_programs_read_every_page_as_text(tmp_path, monkeypatch):
    """`llms.txt` lists each page of the site once, with what it is for; the reference is written out there."""
    monkeypatch.syspath_prepend(ROOT / ".docs")
    assert re.search(r"hooks: \[.*, llms.py\]", SITE), "the last hook sees what the others wrote"
    commands, llms = importlib.import_module("commands"), importlib.import_module("llms")
    for path in DOCUMENTS.glob("*.md"):
        page = SimpleNamespace(file=SimpleNamespace(src_uri=path.name))
        text = commands.on_page_markdown(path.read_text(), page)
        assert llms.on_page_markdown(text, page) == text
    llms.on_post_build(SimpleNamespace(site_dir=tmp_path, nav=navigation(), site_url=None))
    found = (tmp_path / "llms.txt").read_text()
    assert "differential privacy" in found.splitlines()[2]
    links = re.findall(r"^- \[.+\]\((.+?)\): (.+)$", found, re.MULTILINE)
    assert sorted(name for name, _ in links) == sorted(path.name for path in DOCUMENTS.glob("*.md"))
    assert len({told for _, told in links}) == len(links), "each is told by words of its own"
    assert all(10 < len(told) < 250 and "](" not in told for _, told in links), links
    reference = (tmp_path / "reference-questions.md").read_text()
    assert "Stability" in reference and "### distinct(self" in reference
    assert not re.search(r"^:::|<!-- public", "".join(path.read_text() for path in tmp_path.glob("*.md")), re.MULTILINE)


def navigation():
    """The pages of the site as MkDocs reads them: a title with a page, or with the pages of a section."""
    entries = []
    for deep, name, page in re.findall(r"^( +)- ([^:\n]+):(?: (\S+))?$", SITE[SITE.index("\nnav:") :], re.MULTILINE):
        inside = entries if len(deep) == 2 else next(iter(entries[-1].values()))
        inside.append({name: page or []})
    return entries


def test_everything_public_is_in_the_reference(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / ".docs")
    commands = importlib.import_module("commands")
    listed = "".join(
        commands.on_page_markdown(path.read_text(), SimpleNamespace(file=SimpleNamespace(src_uri=path.name)))
        for path in DOCUMENTS.glob("reference-*.md")
    )
    lines = re.findall(r"^::: (\S+)$", listed, re.MULTILINE)
    assert len(lines) == len(set(lines)) > 120
    named = {line.rsplit(".", 1)[1] for line in lines}
    rooms = (wpinq, methods, aggregates, degrees, graphs, testing)
    public = {name for room in rooms for name in room.__all__}
    missing = {name for name in public if not name.endswith("Error")} - {"aggregates", "degrees", "graphs"} - named
    assert not missing, f"{sorted(missing)}: a mark for the names of its room in a page docs/reference-*.md"
