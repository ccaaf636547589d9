"""The tables of `wpinq sql`: `--from` and `--public`, and options of theirs, for all or as TABLE:VALUE for one.

`--at-most visits:20 --at-most people:1`: an option without the name of a table is one of each `--from` that has none of
its own; public tables have their own alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, get_args

from wpinq.apps.cli import arguments
from wpinq.apps.cli.inputs import Input
from wpinq.errors import PlanError, SourceError, WpinqError
from wpinq.sources.form import Words

if TYPE_CHECKING:
    from wpinq.collection import Collection
    from wpinq.core import Reader
    from wpinq.sources import Columns

FORMS = ("columns", *(word for word in Words.__annotations__ if word != "header"))
"""Options of public tables, too."""


@dataclass(frozen=True)
class Tables:
    """What was said of the tables of a query.

    Attributes:
        words: The options, each for all tables or a list of texts of which some are for one table.
    """

    words: Mapping[str, Any]

    def read(self, protected: Sequence[str], public: Sequence[str]) -> tuple[dict[str, Input], dict[str, Public]]:
        """The protected and the public tables by name, in the order in which they were given.

        Raises:
            SourceError, PlanError: They or their options cannot be read.
        """
        sources = dict(named(text, "--from") for text in protected)
        free = dict(named(text, "--public") for text in public)
        if len(sources) + len(free) < len(protected) + len(public) or sources.keys() & free.keys():
            raise SourceError("--from, --public: two tables have one name; each needs its own.")
        self._insist_on_whole_ledger(sources)
        options = self._by_table([*sources, *free])
        inputs = {name: self._input(name, source, options) for name, source in sources.items()}
        if len(inputs) > 1:
            inputs = {name: replace(table, name=table.name or name) for name, table in inputs.items()}
        elif self.words["ledger"]:
            inputs = {
                name: replace(table, name=table.name or _known(table.ledger, name)) for name, table in inputs.items()
            }
        inputs = {name: _led(name, inputs, ()) for name in inputs}
        refused = [(word, name) for word, name in options if name in free and word not in FORMS]
        if refused:
            word, name = refused[0]
            raise PlanError(f"--{word.replace('_', '-')} {name}: it is a public table, of which all is known.")
        return inputs, {name: self._public(name, source, options) for name, source in free.items()}

    def _insist_on_whole_ledger(self, tables: Mapping[str, str]) -> None:
        """Refuse TABLE:LEDGER, which would make a ledger of that name, with a budget of its own."""
        text = str(self.words["ledger"] or "")
        before, colon, _ = text.partition(":")
        if colon and (table := Path(before).name) in tables and not Path(text).exists():
            raise PlanError(f"--ledger {table}:...: one ledger is of all tables; without --ledger each has its own.")

    def _by_table(self, tables: Sequence[str]) -> dict[tuple[str, str | None], list[str]]:
        """What was given to each option for each table, and for all."""
        options: dict[tuple[str, str | None], list[str]] = {}
        for word in LISTED:
            for text in self.words[word] or ():
                table, colon, value = text.partition(":")
                named_table = len(tables) > 1 and colon and table.strip() in tables and not value.startswith(":")
                options.setdefault((word, table.strip() if named_table else None), []).append(
                    value if named_table else text
                )
        twice = [word for (word, _), values in options.items() if len(values) > 1 and word != "derive"]
        if twice:
            option = f"--{twice[0].replace('_', '-')}"
            among = f", {option} {tables[0]}:VALUE, ..." if len(tables) > 1 else ""
            raise PlanError(f"{option}: is given twice; give one for each table{among}.")
        return options

    def _input(self, name: str, source: str, options: Mapping[tuple[str, str | None], list[str]]) -> Input:
        values: dict[str, Any] = {word: self.words[word] for word in PLAIN}
        for word in LISTED:
            texts = [*options.get((word, None), ()), *options.get((word, name), ())]
            values[word] = (texts if word == "derive" else texts[-1]) if texts else None
        if values["at_most"] is not None:
            _check_number(values["at_most"])
            values["shared"] = values["shared"] and ("at_most", name) not in options
        auto = values["at_most"] == "auto" and values["bound_epsilon"] is None
        if auto:  # chosen by the query, for a part of what it costs
            values["at_most"] = None
            if (values["unit"] is None and values["through"] is None) or values["shared"] or values["bound_bins"]:
                raise PlanError("--at-most auto: goes with --unit, without --shared and --bound-bins.")
        return replace(arguments.protected(source=source, **values), auto=auto)

    def _public(self, name: str, source: str, options: Mapping[tuple[str, str | None], list[str]]) -> Public:
        form: Any = {word: options[word, name][0] for word in FORMS if (word, name) in options}
        return Public(Input(source, form.pop("columns", None), form))


def _led(name: str, tables: Mapping[str, Input], led: tuple[str, ...]) -> Input:
    """A table with the table of its owners, where that is another one of the query.

    Raises:
        PlanError: A way leads to no table, or in a circle.
    """
    table_ = tables[name]
    if table_.through is None or table_.owner is not None:
        return table_
    table = table_.through[1]
    if table not in tables or table in (*led, name):
        raise PlanError(f"--through {name}: leads to {table}, which is no other table of --from that names people.")
    owner = _led(table, tables, (*led, name))
    return replace(table_, owner=owner, through=(table_.through[0], owner.name or table, table_.through[2]))


@dataclass(frozen=True)
class Public:
    """A public table as a command line names it, which `sql` opens as any source."""

    data: Input

    def open_reader(self, _: Columns = None) -> Reader:
        """Its rows.

        Raises:
            SourceError: It cannot be read.
        """
        return self.data.reader()


def named(text: str, option: str) -> tuple[str, str]:
    """Read NAME=SOURCE.

    Raises:
        SourceError: It is something else.
    """
    name, equals, source = text.partition("=")
    if not equals or not name or not source:
        raise SourceError(f"{option} {name}: write NAME=SOURCE, for example views=views.csv.")
    return name, source


def protect(
    inputs: Mapping[str, Input], budget: Fraction | None, *, epsilon: Fraction | None, rho: Fraction | None
) -> dict[str, Collection]:
    """Protect all of them, in order to spend epsilon or rho of whatever budget there is, or with this budget."""
    spend = budget is None and all(table.rho is None for table in inputs.values())
    return {
        name: table.protect_to_spend(epsilon, rho) if spend else table.protect_as_allowed(budget, epsilon, rho)
        for name, table in inputs.items()
    }


@contextmanager
def rehearsed(inputs: Mapping[str, Input], *, epsilons: bool = False) -> Iterator[dict[str, Collection]]:
    """The tables without their records, which share a ledger where the records do: mistakes and costs show in them.

    Args:
        inputs: The tables.
        epsilons: See `Input.limitless`.
    """
    with TemporaryDirectory() as folder:
        shared = len(inputs) > 1 and all(table.ledger for table in inputs.values())
        ledger = Path(folder) / "ledger" if shared else None
        yield {
            name: replace(table, name=table.name or name).limitless(ledger, epsilons=epsilons)
            for name, table in inputs.items()
        }


def _known(ledger: Path | None, table: str) -> str | None:
    """The name of a table in its ledger, where the ledger has several and this is one of them."""
    from wpinq.core import Ledger

    if ledger is None:
        return None
    try:
        known = Ledger.find(ledger)
    except WpinqError:  # which is said when it is opened for the question
        return None
    return table if known is not None and table in known.tables else None


def _check_number(text: str) -> None:
    if text != "auto" and not text.strip().isdecimal():
        raise PlanError(f"--at-most {text}: write a number of records, or auto, or TABLE:NUMBER.")


def _parameters() -> list[inspect.Parameter]:
    """The options of one input; those with a value, as lists of texts."""
    parameters = []
    for parameter in inspect.signature(arguments.protected, eval_str=True).parameters.values():
        kind, *about = get_args(parameter.annotation)
        listed = NoneType in get_args(kind) and Path not in get_args(kind)
        if parameter.name in ("source", "delta", "rho"):  # --delta and --rho are the query's
            continue
        (LISTED if listed else PLAIN).append(parameter.name)
        parameters.append(parameter.replace(annotation=Annotated[list[str] | None, *about]) if listed else parameter)
    return parameters


LISTED: list[str] = []
PLAIN: list[str] = []
"""Options that are given for each table, and for all."""


def of_tables(**words: Any) -> Tables:
    """The options of the tables of a query."""
    return Tables(words)


of_tables.__signature__ = inspect.Signature(_parameters())  # type: ignore[attr-defined]
