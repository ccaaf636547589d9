"""Imports go down only. The walls between the rooms carry the guarantee, so a test reads them."""

import ast
from pathlib import Path

import pytest

import wpinq

PACKAGE = Path(wpinq.__file__).parent

LAYERS = [
    {"errors", "progress"},
    {"exact", "kernels", "arguments", "fields"},
    {"schema", "values", "siphash", "secret", "unit", "weights"},
    {"canonical"},
    {"batch", "identity"},
    {"functions", "sources", "ledger", "noise", "state"},
    {"dataset", "bins"},
    {"plan"},
    {"rewrite"},
    {"builder"},
    {"stability"},
    {"operators", "engines"},
    {"explain", "runs", "versions"},
    {"quote"},
    {"charged"},
    {"selection"},
    {"measurement"},
    {"aggregates", "continual", "windowed"},
    {"measuring"},
    {"collection"},
    {"protection", "streaming"},
    {"degrees", "query"},
    {"cli"},
    {"__main__"},
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}

WALLS = {
    "noise": {"errors", "exact", "secret", "kernels"},
    "ledger": {"errors", "exact", "fields", "secret"},
    "functions": {"errors", "exact", "schema", "values", "canonical", "batch", "fields"},
    "sources": {"arguments", "errors", "progress", "exact", "schema", "values", "canonical", "batch", "weights"},
    "engines": {"errors", "exact", "schema", "values", "canonical", "batch", "identity", "state", "plan", "weights"},
    "operators": {
        "arguments",
        "errors",
        "exact",
        "schema",
        "values",
        "canonical",
        "batch",
        "bins",
        "identity",
        "state",
        "functions",
        "plan",
        "builder",
        "stability",
        "unit",
        "weights",
    },
    "stability": {"errors", "plan"},
    "explain": {"exact", "operators", "plan", "stability"},
}
"""Rooms that may import these others and no more, however low those lie."""


def imports(path: Path) -> set[str]:
    """The rooms of wpinq that a file imports at run time, also inside functions."""
    tree = ast.parse(path.read_text())
    hidden = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    names = set()
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "wpinq":
            rest = node.module.split(".")[1:]
            names |= {rest[0]} if rest else {wpinq._HOMES.get(alias.name, alias.name) for alias in node.names}
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("wpinq.")}
    return names


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")
NAMES = [str(path.relative_to(PACKAGE)) for path in FILES]


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_imports_go_down(path):
    own = room(path)
    assert own in LEVEL, f"{own} is a new room: give it a layer"
    for other in imports(path) - {own}:
        assert LEVEL[other] < LEVEL[own], f"{path.name} imports {other}, which is not below {own}"
        assert own not in WALLS or other in WALLS[own], f"{own} may not know {other}"


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_only_measurements_know_the_noise(path):
    assert "noise" not in imports(path) or room(path) in {
        "noise",
        "quote",
        "charged",
        "selection",
        "measurement",
        "aggregates",
        "continual",
    }


@pytest.mark.parametrize("path", sorted((PACKAGE / "degrees").glob("*.py")), ids=lambda path: path.name)
def test_postprocessing_knows_released_numbers_only(path):
    assert imports(path) <= {"arguments", "degrees", "errors", "exact", "kernels"}


def test_a_forbidden_import_is_found(tmp_path):
    """The reader of imports sees what it is there to see."""
    file = tmp_path / "bad.py"
    inside = "def f():\n    from wpinq.noise import mechanism\n    import wpinq.ledger.store\n"
    file.write_text(inside + "from wpinq import runs, protect\n")
    assert imports(file) == {"noise", "ledger", "runs", "protection"}
