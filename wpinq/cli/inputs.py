"""The input of a command: what is known of it before anything is charged, and how it is protected."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from wpinq.errors import LedgerError, PlanError
from wpinq.records.schema import Kind
from wpinq.sources.columns import named, parse_columns
from wpinq.sources.form import Words

if TYPE_CHECKING:
    from wpinq.collection import Collection
    from wpinq.plan.unit import Unit
    from wpinq.records.schema import Schema
    from wpinq.sources import Reader

DEFAULT = "user,page"
"""Columns of a dataflow that is explained without any input."""


@dataclass(frozen=True)
class Input:
    """Records to protect, as a command line names them.

    Attributes:
        source: A path or pattern, or a table or query of a database, as a URL; empty for one without records.
        columns: Names and types of columns, as they were written.
        words: How it is read: what `protect` is told of its form.
        ledger: Where the ledger is kept.
        name: Names the data set in its ledger.
        version: Names this version of the data.
        unit: Whom it protects; by default one record.
        delta: What a new ledger allows for publishing bins whose keys were not given in advance.
        where: Which records are counted, as SQL; asked before those of a person are bounded.
        derive: Columns that are computed of each record before that, as SQL, by their names.
        repeat: What to do before a question is charged again.
    """

    source: str
    columns: str | None = None
    words: Words = field(default_factory=Words)
    ledger: Path | None = None
    name: str | None = None
    version: str | None = None
    unit: Unit | None = None
    delta: Fraction = Fraction(0)
    where: str | None = None
    derive: Mapping[str, str] = field(default_factory=dict)
    repeat: str = "charge"

    def reader(self) -> Reader:
        """The records, of which nothing but headers and schemas is read; no ledger is made.

        Raises:
            SourceError: It cannot be read as records.
        """
        from wpinq.sources import open_source

        if not self.source:
            schema = named(parse_columns(self.columns or DEFAULT), Kind.TEXT, None, "--columns")
            return open_source([], columns={column.name: column.kind.value for column in schema})
        return open_source(self.source, columns=parse_columns(self.columns), **self.words)

    def schema(self) -> Schema:
        """The columns, which are public.

        Raises:
            SourceError: It cannot be read as records.
        """
        return self.reader().schema

    def empty(self, budget: Fraction, ledger: Path | None = None) -> Collection:
        """A collection without records that is protected alike, with a budget in memory: mistakes show in it.

        Args:
            budget: The budget.
            ledger: A ledger that is kept for as long as it is looked at, where tables share one.

        Raises:
            SourceError, PlanError: It cannot be read or protected so.
        """
        import wpinq

        reader = self.reader()
        columns = {column.name: None if column.kind is Kind.ANY else column.kind.value for column in reader.schema}
        name = self.name or reader.name
        with named_as_options():
            return wpinq.protect(
                [], budget=budget, columns=columns, name=name, unit=self.unit, where=self.where, derive=self.derive,
                ledger=ledger,
            )  # fmt: skip

    def protect(self, budget: Fraction | None) -> Collection:
        """Protect the records, with the budget that the data set has or is given."""
        import wpinq

        with named_as_options():
            return wpinq.protect(
                self.source,
                budget=budget,
                ledger=self.ledger,
                columns=parse_columns(self.columns),
                name=self.name,
                version=self.version,
                unit=self.unit,
                delta=None if budget is None else self.delta or None,
                where=self.where,
                derive=self.derive,
                **self.words,
                repeat=self.repeat,
            )

    def protect_to_spend(self, epsilon: Fraction) -> Collection:
        """Protect the records in order to spend epsilon of whatever their budget is; a new ledger gets this budget."""
        try:
            return self.protect(epsilon)
        except LedgerError as refused:
            try:
                return self.protect(None)
            except LedgerError:
                raise refused from None

    def protect_as_allowed(self, budget: Fraction) -> Collection:
        """Protect the records with this budget, and with the delta that the ledger allows if there is one."""
        from wpinq.plan.node import sources

        try:
            return self.protect(budget)
        except LedgerError as refused:
            try:
                result = self.protect(None)
            except LedgerError:
                raise refused from None
            if sources(result._node)[0].ledger.budget != budget:
                raise
            return result

    def places(self) -> set[Path]:
        """The files that no output may replace.

        Raises:
            SourceError: The input is not there, or of no known format.
        """
        from wpinq.ledger.file import ENDS
        from wpinq.protection import beside

        reader = self.reader()
        result = getattr(reader, "found", None)  # the files of a pattern; a database is one file, or none
        files = {file.path for file in result.files} if result else {reader.path} if reader.path else set()
        ledger = self.ledger or beside(reader.path)
        return files | {Path(f"{ledger}{end}").resolve() for end in ENDS if ledger}


@contextmanager
def named_as_options() -> Iterator[None]:
    """Replace names of arguments in error messages by the command-line options that the user gave."""
    try:
        yield
    except PlanError as error:
        argument = re.match(
            r"(?:protect|live|users|Unit)\((unit|where|derive|at_most|per|period|zone|repeat)=[^)]*\)", str(error)
        )
        if argument is None:
            raise
        option = argument[1].replace("_", "-")
        raise PlanError(f"--{option}{str(error)[argument.end() :]}") from None
