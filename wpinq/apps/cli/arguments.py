"""The parameters that say which records a command reads and whom it protects, shared by several commands."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from wpinq.apps.cli import options
from wpinq.apps.cli import unit as unit_options
from wpinq.apps.cli.inputs import Input
from wpinq.errors import PlanError
from wpinq.sources.form import Words

if TYPE_CHECKING:
    from wpinq.distributed.processes import Processes

R = TypeVar("R")


class Window(TypedDict):
    """In which periods people are protected, as it was written."""

    period: str | None
    at: str | None
    zone: str | None


def over(factory: Callable[..., object]) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Give a command the arguments and options that make its parameter `data`, in its place among the others.

    What the command declares itself under the name of one of them is its own way to say the same.
    """

    def decorate(command: Callable[..., R]) -> Callable[..., R]:
        shared = inspect.signature(factory, eval_str=True).parameters
        declared = dict(inspect.signature(command, eval_str=True).parameters)
        parameters: dict[str, inspect.Parameter] = {}
        for name, parameter in declared.items():
            parameters.update(shared if name == "data" else {name: parameter})

        @functools.wraps(command)
        def wrapped(**words: Any) -> R:
            input_data = factory(**{name: words[name] for name in shared if name in words})
            return command(data=input_data, **{name: words[name] for name in declared if name in words})

        ordered = sorted(parameters.values(), key=lambda parameter: parameter.kind)
        wrapped.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
        return wrapped

    return decorate


def records(
    source: options.InputPath,
    *,
    unit: unit_options.UnitColumn = None,
    at_most: unit_options.AtMost = None,
    per: unit_options.Per = None,
    shared: unit_options.Shared = False,
    period: unit_options.Period = None,
    at: unit_options.At = None,
    zone: unit_options.Zone = None,
    through: unit_options.Through = None,
    owners: unit_options.Owners = None,
    bound_epsilon: unit_options.BoundEpsilon = None,
    bound_bins: unit_options.BoundBins = None,
    where: unit_options.Where = None,
    derive: unit_options.Derive = None,
    columns: options.ColumnNames = None,
    header: options.Header = True,
    format: options.Format = None,  # noqa: A002  it is the option's name
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    table: options.Table = None,
    tz: options.TimeZone = None,
) -> Input:
    """Records and whom to protect, for commands that charge nothing."""
    chosen = bound_epsilon, bound_bins
    window: Window = {"period": period, "at": at, "zone": zone}
    if through is None:
        whom = unit_options.read_unit(unit, at_most, chosen, per=per, shared=shared, **window)
    elif owners is None and period is not None:
        raise PlanError("--through: leads to people in the periods of their own table: give --period to that one.")
    else:
        whom = unit_options.read_unit(unit_options.OWNER, at_most, chosen, per=per, shared=shared)
    words: Words = {
        "header": header, "format": format, "separator": separator, "decimal": decimal, "encoding": encoding,
        "table": table, "tz": tz,
    }  # fmt: skip
    way = None if through is None else _way(through)
    owner = None if owners is None else _owner(owners, unit, way, window)
    return Input(
        source, columns, words, unit=whom, where=where, derive=unit_options.read_derived(derive), through=way,
        owner=owner,
    )  # fmt: skip


def _way(text: str) -> tuple[str, str, str]:
    from wpinq.sources.owned import read_way  # which loads Polars

    return read_way(text, "--through")


def _owner(text: str, unit: str | None, way: tuple[str, str, str] | None, window: Window) -> Input:
    """The table that names the person, of which nothing but that is looked at.

    Raises:
        PlanError: It is no table of a way, or nothing names the person in it.
    """
    name, equals, source = text.partition("=")
    if way is None or not (name and equals and source) or name != way[1]:
        raise PlanError("--owners: write TABLE=INPUT, with the table of --through COLUMN=TABLE.COLUMN.")
    if unit is None:
        raise PlanError(f"--owners {name}: give --unit too, the column that names the person there.")
    return Input(source, unit=unit_options.read_unit(unit, None, per=None, shared=False, **window), name=name)


def _started(processes: int) -> Processes | None:
    """So many processes, which start while this one loads what the command needs; None where it is alone."""
    if processes == 1:
        return None
    from wpinq.apps.cli.process import check_threads
    from wpinq.apps.scripts import WORKER
    from wpinq.distributed.processes import Processes

    check_threads(processes)
    engine = Processes(processes, WORKER)
    engine.start()
    return engine


@over(records)
def protected(
    data: Input,
    *,
    ledger: options.LedgerPath = None,
    name: options.Name = None,
    data_version: options.DataVersion = None,
    repeat: options.Repeat = "charge",
    accounting: options.Accounting = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    processes: options.Processes = 1,
    index: options.Index = False,
) -> Input:
    """The same and their ledger, for commands that charge."""
    return replace(
        data, ledger=ledger, name=name, version=data_version, repeat=repeat, accounting=accounting, delta=delta,
        rho=rho, engine=_started(processes), index=index,
    )  # fmt: skip
