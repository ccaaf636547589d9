"""The house: sizes of files, the public face, types, and what must not be in the text of the project."""

import ast
import re
import subprocess
import sys
from importlib import import_module
from inspect import unwrap
from pathlib import Path

import pytest

import wpinq
from wpinq.core import kernels, methods

PACKAGE = Path(wpinq.__file__).parent
ROOT = PACKAGE.parent
FILES = sorted(PACKAGE.rglob("*.py"))


def test_files_fit_a_reader():
    long = [path for path in FILES if len(path.read_text().splitlines()) > 500]
    assert not long, long


def test_functions_fit_a_screen():
    long = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
                if node.end_lineno - first.lineno >= 50:
                    long.append((path, node.name))
    assert not long, long


def test_public_names_exist_and_are_sorted():
    assert wpinq.__all__ == sorted(wpinq.__all__)
    for name in wpinq.__all__:
        assert getattr(wpinq, name) is not None
    for face in (wpinq, wpinq.aggregates, wpinq.degrees, methods):
        assert dir(face) == face.__all__
        assert all(callable(getattr(face, name)) or name in wpinq.__all__ for name in face.__all__)
        with pytest.raises(AttributeError, match="it has " + ", ".join(face.__all__)):
            face.nothing  # noqa: B018


def test_methods_of_collections_are_the_functions_of_their_rooms():
    for room in (methods, wpinq.aggregates):
        for name in set(room.__all__) & set(vars(wpinq.Collection)):
            assert unwrap(getattr(wpinq.Collection, name)) is unwrap(getattr(room, name))


@pytest.mark.parametrize("face", [wpinq, wpinq.aggregates, wpinq.degrees])
def test_no_file_hides_the_function_that_is_loaded_from_it(face):
    """A file makes a module of the function of its name in its folder, if that is loaded late."""
    names = {name for name in face.__all__ if callable(getattr(face, name))}
    for name in names & {path.stem for path in Path(face.__file__).parent.glob("*.py")}:
        import_module(f"{face.__name__}.{name}")
        assert callable(getattr(face, name)), name


HEAVY = {"asyncio", "bytewax", "cryptography", "matplotlib", "networkx", "numpy", "polars", "prompt_toolkit", "pyarrow",
         "pyarrow.compute", "rich", "sqlglot", "typer", "wpinq.apps.cli.run"}  # fmt: skip
ASKED = """
import wpinq
pages = wpinq.protect(sys.argv[1], budget=1).map({page})
wpinq.degrees.cdf(pages).measure(1).observe_many(range(10))
"""
PARQUET = """
import polars
polars.read_csv(sys.argv[1]).write_parquet(sys.argv[1] + ".parquet")
sys.argv[1] += ".parquet"
"""
LOADED = {
    "import wpinq": set(),
    "from wpinq import protect": {"cryptography", "numpy", "polars"},
    "from wpinq.apps.cli import main; main(['--help'])": {"rich", "typer", "wpinq.apps.cli.run"},
    "from wpinq.apps.cli import main; main(['degrees', sys.argv[1], '--of', 'page', '--budget', '1'])": {
        "cryptography",
        "numpy",
        "polars",
        "pyarrow",
        "typer",
    },
    ASKED.format(page="'page'"): {"cryptography", "numpy", "polars", "pyarrow"},
    ASKED.format(page="lambda page: page"): {"cryptography", "numpy", "polars", "pyarrow"},
    PARQUET + ASKED.format(page="'page'"): {"cryptography", "numpy", "polars"},
}


@pytest.mark.parametrize("code", LOADED)
def test_only_what_is_needed_is_loaded(code, tmp_path):
    """Most of the time of a small question is loading; so what is loaded is agreed here, for each way to ask."""
    path = tmp_path / "views.csv"
    path.write_text("user,page\nann,home\nbob,home\n")
    told = f"import sys\n{code}\nprint(*sorted({HEAVY} & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", told, path], capture_output=True, text=True, check=True)
    without_kernels = {"pyarrow", "pyarrow.compute"} if kernels.LIB is None else set()
    assert set(done.stderr.split()) <= LOADED[code] | without_kernels


def test_top_level_is_what_was_agreed():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    top = {line.split("/")[0] for line in listed.stdout.splitlines()}
    agreed = {"pyproject.toml", "wpinq", "dataflows", "examples", "tests", "README.md", "LICENSE"}
    assert {name for name in top if not name.startswith(".")} <= agreed


def test_package_draws_no_ordinary_randomness_outside_of_postprocessing():
    for path in FILES:
        if "postprocess" not in path.parts:
            text = path.read_text()
            assert "np.random" not in text, path
            assert "import random" not in text, path


PRIVATE = (
    "lattice", "quietly", "measurable", "books", "stranger", "remembers nothing", "remember nothing", "records meet",
)  # fmt: skip
"""Words that had a private meaning here; the glossary has the terms of the field."""


def private_words(text):
    """The private words of a text, also where a line ends inside of one."""
    return re.findall(rf"\b({'|'.join(PRIVATE)})\b", " ".join(text.lower().split()))


def test_private_words_do_not_come_back():
    found = {path: words for path in FILES if (words := private_words(path.read_text()))}
    assert not found, found


def test_a_private_word_is_found():
    assert private_words("self.lattice; a resolution that is clear") == ["lattice"]
    assert private_words("where records\n    meet, Quietly") == ["records meet", "quietly"]
