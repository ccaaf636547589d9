"""Dataflow scripts: found by path or name, loaded, and rehearsed on a collection without records."""

from __future__ import annotations

import contextlib
import functools
import runpy
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import wpinq
from wpinq.errors import PlanError, WpinqError

if TYPE_CHECKING:
    from wpinq import Measurement
    from wpinq.collection import Collection

Dataflow: TypeAlias = "Callable[[Collection], dict[str, Measurement]]"
Check: TypeAlias = "Callable[[Mapping[str, Measurement]], None]"

_INSTALLED = Path(wpinq.__file__).with_name("dataflows")
HOME = _INSTALLED if _INSTALLED.is_dir() else Path(wpinq.__file__).parents[1] / "dataflows"


def load(name: str) -> Dataflow:
    """Load a dataflow script and check everything about it that can be checked without columns.

    Args:
        name: A path of a script, or the name of one in `dataflows/`.

    Returns:
        Its function, which raises a PlanError whatever goes wrong in it.

    Raises:
        PlanError: There is no such script, it fails, or it defines no `dataflow(views)`.
    """
    path = find(name)
    with _redacted(path):
        content = runpy.run_path(str(path), run_name="dataflow")
    function = content.get("dataflow")
    if not callable(function):
        raise PlanError(f"{path}: defines no function dataflow(views); it returns a dict of measurements by name.")

    @functools.wraps(function)  # an audit looks for its constants
    def dataflow(views: Collection) -> dict[str, Measurement]:
        with _redacted(path):
            result = function(views)
        return _checked(result, path)

    return dataflow


@dataclass(frozen=True)
class Rehearsal:
    """A run of a dataflow over no records, with a budget in memory, so that its errors show before anything is charged.

    A script is a program, which may observe what it measured before it goes on: only a run shows what it asks for.

    Attributes:
        script: The dataflow.
        measurements: Those that it made of no records.
        whole: Whether it does nothing but measure, so that all of it can be charged at once.
    """

    script: Dataflow
    measurements: dict[str, Measurement]
    whole: bool

    def charge(self, views: Collection, check: Check | None = None) -> dict[str, Measurement]:
        """Charge for what the script measures of these views: for all of it or for nothing, where that can be known.

        Args:
            views: The collection.
            check: Is given the measurements before they are charged, where that can be known, and may raise.

        Raises:
            BudgetError: It costs more than is left.
            PlanError: It fails.
        """
        from wpinq.apps.scripts.draft import charged

        return charged(self.script, views, check) if self.whole else self.script(views)


def rehearsed(dataflow: Dataflow, views: Collection) -> Rehearsal:
    """Run a dataflow over views that hold no records; what it prints is not shown, since it will be printed again."""
    from wpinq.apps.scripts.draft import only_measures
    from wpinq.core import dropping

    with dropping("stdout"):
        result = dataflow(views)
    return Rehearsal(dataflow, result, only_measures(result, views))


def chosen(measurements: Mapping[str, Measurement], name: str) -> Measurement:
    """The measurement of this name.

    Raises:
        PlanError: There is none.
    """
    if name not in measurements:
        raise PlanError(f"no measurement {name!r}; there are {', '.join(map(repr, measurements))}.")
    return measurements[name]


def find(name: str) -> Path:
    """The script of a path or name.

    Raises:
        PlanError: There is none.
    """
    path = Path(name)
    with contextlib.suppress(OSError):  # a name may be longer than any file's
        if path.is_file():
            return path
    known = sorted(item.stem for item in HOME.glob("[!_]*.py"))
    if path.stem in known and path.parent in (Path(), Path("dataflows")) and path.suffix in ("", ".py"):
        return HOME / f"{path.stem}.py"
    raise PlanError(f"{name}: no such dataflow script; give a path, or one of {', '.join(known)}.")


def _checked(result: Any, path: Path) -> dict[str, Measurement]:
    from wpinq import Measurement

    if not isinstance(result, Mapping) or not result:
        raise PlanError(f"{path}: dataflow(views) returned no dict of measurements by name.")
    for name, item in result.items():
        if not isinstance(name, str) or not isinstance(item, Measurement):
            raise PlanError(
                f"{path}: dataflow(views) returned {type(item).__name__} under {name!r}; "
                "names are text, and a measurement is made by collection.measure(epsilon=...)."
            )
    return dict(result)


@contextlib.contextmanager
def _redacted(path: Path) -> Any:
    """The error of a failed script: its line and the type of the exception, not its text, which could quote data."""
    try:
        yield
    except WpinqError:
        raise
    except SyntaxError as error:
        raise PlanError(f"{path}, line {error.lineno}: {error.msg}.") from None
    except ModuleNotFoundError as error:
        if error.name is None or error.name not in path.read_text("utf-8", "replace"):
            raise PlanError(f"{path}: ModuleNotFoundError; run the script by itself to see more.") from None
        raise PlanError(f"{path}: there is no module {error.name!r} here; install it for {sys.executable}.") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001  a script may raise anything, and end itself
        lines = [item.lineno for item in traceback.extract_tb(error.__traceback__) if item.filename == str(path)]
        where = f"{path}, line {lines[-1]}" if lines else f"{path}"
        raise PlanError(f"{where}: {type(error).__name__}; run the script by itself to see more.") from None
