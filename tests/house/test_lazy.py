"""Names that are loaded when they are first used are what they say, and loading them leaves the host alone."""

import gc
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace

import processes
import pytest

import wpinq
from wpinq.lazy import Methods

FACES = ("wpinq", "wpinq.aggregates", "wpinq.degrees", "wpinq.graphs", "wpinq.core.methods")
"""Modules whose names are loaded late."""


@pytest.mark.parametrize("face", FACES)
def test_no_file_of_a_face_hides_a_name_of_it(face):
    """`aggregates/iqr.py` would make `aggregates.iqr` the module, as soon as anybody imports from that file."""
    module = import_module(face)
    rooms = {name for name in module.__all__ if isinstance(getattr(module, name), ModuleType)}
    if Path(module.__file__).name == "__init__.py" and face != "wpinq":
        for path in Path(module.__file__).parent.glob("*.py"):
            import_module(f"{face}.{path.stem}" if path.stem != "__init__" else face)
    assert {name for name in module.__all__ if isinstance(getattr(module, name), ModuleType)} == rooms
    assert all(vars(module)[name] is getattr(module, name) for name in module.__all__), "each is kept once asked for"


def test_an_unknown_name_is_told_with_those_that_there_are():
    with pytest.raises(AttributeError, match=r"no attribute 'mesure'; it has .*protect"):
        wpinq.mesure  # noqa: B018


def test_the_library_leaves_the_collector_of_its_host_alone():
    code = (
        "import gc, wpinq; before = gc.get_threshold();"
        "views = wpinq.protect([('ann', 'home')], budget=1, columns={'user': str, 'page': str});"
        "views.map('page').measure('0.1').observe('home');"
        "print(gc.isenabled(), gc.get_freeze_count(), gc.get_threshold() == before)"
    )
    assert processes.printed("-W", "ignore", "-c", code, fresh=True).split() == ["True", "0", "True"]


def test_a_command_that_is_called_leaves_it_alone_too(capsys):
    from wpinq.apps.cli import main

    threshold, frozen = gc.get_threshold(), gc.get_freeze_count()
    assert main(["--version"]) == 0
    assert gc.get_threshold() == threshold
    assert gc.get_freeze_count() <= frozen


def test_a_method_that_is_loaded_late_is_found_as_any_other():
    """By an object, by the class, and by a class that has its own and calls the first one's, once."""
    module = Methods(SimpleNamespace(length=lambda self: [len(self)]))

    class First(list):
        size = module.length
        length = module.length

    class Second(First):
        def size(self):
            return ["once", *super().size()]

    assert Second("ab").size() == ["once", 2] == Second("ab").size()
    assert First("abc").size() == [3] == First.size("abc") == First("abc").length()
    assert First.size is First.length is vars(First)["size"]


def test_what_is_put_in_place_of_a_method_stays():
    class First(list):
        size = Methods(SimpleNamespace(size=lambda self: [len(self)])).size

    before = vars(First)["size"]
    First.size = lambda self: ["counted", before.__get__(self, First)()]
    assert First("abc").size() == ["counted", [3]] == First("abc").size()


THREE = """
import sys
import wpinq
views = wpinq.protect([("ann", "home"), ("bob", "home")], budget=1, columns=("user", "page"))
views.map(lambda page: page).measure(epsilon="0.1").observe("home")
print(*(name for name in sys.modules if name.partition(".")[0] == "wpinq"))
"""


def test_a_question_loads_what_it_needs():
    """Noise that few plans have, epochs, windows, people and what shows answers are loaded where they are asked for."""
    loaded = processes.printed("-c", THREE, fresh=True).split()
    assert len(loaded) <= 120, "what does a question in memory need of it?"
    assert not [name for name in loaded if name.partition(".")[2].startswith(("apps", "html", "postprocess", "query"))]


DEGREES = """
import sys
from wpinq.apps.cli import main
main(["degrees", "views.csv", "--of", "page", "--budget", "1"])
print(*(name for name in sys.modules if name.partition(".")[0] == "wpinq"))
"""


def test_the_main_command_loads_what_it_needs(tmp_path):
    """Formats of logs, writers, pictures and Python functions are loaded where they are asked for."""
    (tmp_path / "views.csv").write_text("user,page\n" + "".join(f"u{n % 50},p{n % 7}\n" for n in range(500)))
    loaded = processes.printed("-c", DEGREES, fresh=True, cwd=tmp_path).splitlines()[-1].split()
    assert "wpinq.degrees.release" in loaded
    assert len(loaded) <= 150, "what does a degree distribution of a CSV file need of it?"
