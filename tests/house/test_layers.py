"""Imports go down only, types included. The walls between the rooms carry the guarantee, so a test reads them."""

import ast
from functools import cache
from pathlib import Path

import wpinq
from wpinq import core

PACKAGE = Path(wpinq.__file__).parent

FLOORS = [
    {"apps", "errors", "kernels"},
    {"arguments", "exact", "lazy", "progress", "records", "storage"},
    {"noise", "html", "functions", "ledger", "state"},
    {"plan", "postprocess", "sources"},
    {"operators", "engines"},
    {"runs"},
    {"pricing"},
    {"measurements"},
    {"core", "methods"},
    {"aggregates", "show"},
    {"collection"},
    {"protection", "streaming", "degrees"},
    {"query", "testing", "graphs", "distributed"},
    {"remote"},
    {"__init__"},
    {"agents", "scripts"},
    {"publish"},
    {"tools"},
    {"serve"},
    {"cli"},
    {"__main__"},
]
"""Records, then plans, then engines, then measurements, then the face; time, SQL and the command line stand on the
face; post-processing stands on nothing but numbers; and nothing imports upwards, not even for a type."""
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
LOOSE = 10
"""Files at the root of the package at the most: the face, and tools that every room uses."""

WALLS = {
    "noise": {"errors", "exact", "kernels"},
    "postprocess": {"arguments", "errors", "exact", "html", "kernels", "progress", "storage"},
    "ledger": {"errors", "exact", "lazy", "records", "storage"},
    "functions": {"errors", "records"},
    "engines": {"errors", "functions", "plan", "records", "state"},
}
"""Rooms that may import these others and no more, however low those lie. Post-processing never meets the ledger, the
noise or an engine; the ledger knows no data; engines never know the budget."""
BELOW = {"arguments", "errors", "exact", "lazy", "progress", "storage"}
"""What the core stands on: tools that know nothing of data."""
FACE = 60
"""Names of the core that programs use. Fewer are better; another one needs a reason."""
STEPS = 6
"""Files of a folder that stand above each other, at the most: so many are read to follow its longest thread."""
DRAWERS = {"noise", "pricing", "measurements", "aggregates"}
"""Rooms that may know the noise."""
JUDGES = {f"wpinq.testing.checks.{name}" for name in ("choices", "names", "trees")}
"""Modules of `wpinq audit --self` that feed it words: they judge it, read no data and answer nothing."""


def modules() -> dict[str, Path]:
    """All modules of the package by name; a package by its own name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(("wpinq", *parts)).removesuffix(".__init__")] = path
    return found


MODULES = modules()
ROOMS = sorted(path.parent for pattern in ("*", "core/*", "apps/*") for path in PACKAGE.glob(f"{pattern}/__init__.py"))


HOMES = {name: home for home, names in wpinq._HOMES.items() for name in names.split()}


def imports(path: Path) -> set[str]:
    """The modules of wpinq that a file imports, anywhere in it: for types too, and inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "wpinq":
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                named = HOMES.get(alias.name) if node.module == "wpinq" else None
                found.add(inner if inner in MODULES else f"wpinq.{named}" if named else node.module)
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "wpinq"}
    return found


def room(module: str) -> str:
    """The room of a module: a folder of the package, of the core or of the programs, or a file at the root."""
    parts = module.split(".")
    inside = parts[2:] if parts[1:2] in (["core"], ["apps"]) else parts[1:]
    return inside[0] if inside else parts[-1] if len(parts) > 1 else "__init__"


@cache
def graph() -> dict[str, set[str]]:
    """What each module imports. Made when a test asks: whoever collects the tests would read all files for nothing."""
    return {name: imports(path) - {name} for name, path in MODULES.items()}


def test_imports_go_down():
    new = set(map(room, graph())) - set(FLOOR)
    assert not new, f"{new}: give a new room a place in FLOORS above"
    wrong = []
    for name, others in graph().items():
        own = room(name)
        for other in set(map(room, others)) - {own}:
            if FLOOR[other] >= FLOOR[own]:
                wrong.append(f"{name} imports {other}, which is not below {own}")
            if own in WALLS and other not in WALLS[own]:
                wrong.append(f"{name}: {own} may not know {other}")
    assert not wrong, wrong


def test_no_files_import_each_other_in_a_circle():
    """Files are peeled off that import none of those left; a circle, types included, would be left over."""
    left = {name: set(others) & set(MODULES) - {"wpinq"} for name, others in graph().items()}
    while free := [name for name, others in left.items() if not others & set(left)]:
        for name in free:
            del left[name]
    assert not left, sorted(left)


def home(path: Path) -> Path:
    """The folder of a file that has a README, which says what is in it."""
    return next(folder for folder in path.parents if (folder / "README.md").exists())


def test_a_room_is_read_in_a_few_steps():
    """How many files stand above each other in a folder: of those that import nothing else of it, and so on up."""
    high = {}
    for folder in {home(path) for path in MODULES.values()} - {PACKAGE.parent}:
        left = {name: graph()[name] for name, path in MODULES.items() if home(path) == folder}
        floors = 0
        while left:
            left = {name: others for name, others in left.items() if others & set(left)}
            floors += 1
        if floors > STEPS:
            high[folder.name] = floors
    assert not high


def test_only_measurements_know_the_noise():
    wrong = [
        name for name, others in graph().items() if "noise" in set(map(room, others)) and room(name) not in DRAWERS
    ]
    assert set(wrong) == JUDGES, wrong


def test_the_core_knows_nothing_of_what_stands_on_it():
    outside = {}
    for name, others in graph().items():
        if name.startswith("wpinq.core"):
            for other in others:
                if not other.startswith("wpinq.core") and room(other) not in BELOW:
                    outside.setdefault(room(other), set()).add(name.removeprefix("wpinq.core."))
    assert not outside


def imported(path: Path) -> list[tuple[str, str]]:
    """Pairs of a module of wpinq and a name that a file imports from it."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return [(node.module or "", alias.name) for node in nodes if isinstance(node, ast.ImportFrom)
            for alias in node.names]  # fmt: skip


def test_programs_know_the_face_of_the_core_and_no_more():
    pairs = [(path, *pair) for path in (PACKAGE / "apps").rglob("*.py") for pair in imported(path)]
    past = [(str(path), module, name) for path, module, name in pairs if module.startswith("wpinq.core.")]
    assert not past, f"{past}: name it in core/__init__.py, and import it from there"
    assert {name for _, module, name in pairs if module == "wpinq.core"} == set(core.__all__)
    typed = {name for module, name in imported(PACKAGE / "core/__init__.py") if module.startswith("wpinq.core.")}
    assert typed == set(core.__all__)
    assert len(core.__all__) == FACE
    assert all(getattr(core, name) is not None for name in core.__all__)


def test_few_files_lie_loose_at_the_root():
    assert len(list(PACKAGE.glob("*.py"))) <= LOOSE


def test_every_room_says_what_it_knows_and_how_to_add_to_it():
    for folder in ROOMS:
        assert "**To add to it.**" in (folder / "README.md").read_text()


def test_every_file_begins_with_what_it_knows():
    for path in PACKAGE.rglob("*.py"):
        first = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]
        assert first.endswith((".", ":")), f"{path.relative_to(PACKAGE)}: begin it with one sentence on what it knows"


def test_a_forbidden_import_is_found(tmp_path):
    """The reader of imports sees what it is there to see."""
    file = tmp_path / "bad.py"
    inside = "def f():\n    from wpinq.core.noise import mechanism\n    import wpinq.core.ledger.store\n"
    typed = "if TYPE_CHECKING:\n    from wpinq.core.runs import run\n"
    file.write_text(inside + typed + "from wpinq import protect\n")
    assert imports(file) == {"wpinq.core.noise", "wpinq.core.ledger.store", "wpinq.core.runs.run", "wpinq.protection"}
