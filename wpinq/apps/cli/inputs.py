"""The input of a command: what is known of it before anything is charged, and how it is protected."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wpinq.core import Kind
from wpinq.errors import BudgetError, LedgerError, PlanError
from wpinq.exact import decimal
from wpinq.sources.form import Words, named, parse_columns

if TYPE_CHECKING:
    from wpinq import Unit
    from wpinq.collection import Collection
    from wpinq.core import Engine, Ledger, Reader, Schema

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
        accounting: How a new ledger adds up charges.
        delta: What a new ledger allows in all, as it was written.
        rho: Its budget, where that is not epsilon, as it was written.
        where: Which records are counted, as SQL; asked before those of a person are bounded.
        derive: Columns that are computed of each record before that, as SQL, by their names.
        repeat: What to do before a question is charged again.
        engine: What computes the answers, if that is not this process.
        index: Whether its records are kept by person beside the ledger.
        through: Where records do not name the person, the column that is looked up, a table, and the column there.
        owner: That table.
        auto: Whether a query chooses how many records of each person are kept.
    """

    source: str
    columns: str | None = None
    words: Words = field(default_factory=Words)
    ledger: Path | None = None
    name: str | None = None
    version: str | None = None
    unit: Unit | None = None
    accounting: str | None = None
    delta: str | Fraction | None = None
    rho: str | None = None
    where: str | None = None
    derive: Mapping[str, str] = field(default_factory=dict)
    repeat: str = "charge"
    engine: Engine | None = None
    index: bool = False
    through: tuple[str, str, str] | None = None
    owner: Input | None = None
    auto: bool = False

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

    def paired(self) -> Reader:
        """The records, each with its owners where there is a way to them.

        Raises:
            SourceError, PlanError: They cannot be read so.
        """
        if self.through is None:
            return self.reader()
        from wpinq.core import sources
        from wpinq.protection import pairs

        owner = self._owner
        (led,) = sources(owner.limitless()._node)
        return pairs(self.reader(), replace(led, reader=owner.paired()), self.through)

    def without_owner(self) -> tuple[int, int] | None:
        """How many records there are, and of how many nobody is the owner; None where there is no way to owners."""
        from wpinq.sources.owned import Owned

        pairs = self.paired() if self.through is not None else None
        return pairs.without_owner() if isinstance(pairs, Owned) else None

    @property
    def _owner(self) -> Input:
        """The table of owners, with the ledger and the budget of this one.

        Raises:
            PlanError: There is none.
        """
        if self.through is None or self.owner is None:
            table = "TABLE" if self.through is None else self.through[1]
            raise PlanError(f"--through: say where {table} is: --owners {table}=INPUT, or a --from of that name.")
        owner = replace(self.owner, index=False)
        return replace(
            owner, ledger=owner.ledger or self.ledger, accounting=self.accounting, delta=self.delta, rho=self.rho
        )

    def _whom(self, owner: Collection | None) -> Unit | None:
        """Whom it protects: through a way the owner that its table names."""
        if self.through is None or self.unit is None:
            return self.unit
        from wpinq import users

        key, _, owner_column = self.through
        led = users(through=(key, owner, owner_column))
        return replace(self.unit, column=led.column, way=led.way, owner=led.owner, period=led.period, zone=led.zone)

    def schema(self) -> Schema:
        """The columns, which are public.

        Raises:
            SourceError: It cannot be read as records.
        """
        return self.reader().schema

    def promise(self, budget: Fraction | None) -> dict[str, Any]:
        """What a ledger is to promise in all, in the words of `protect`; nothing where it is to be there.

        Raises:
            PlanError: There are two budgets.
        """
        if self.rho is not None and budget is not None:
            raise PlanError("--rho: it is a budget itself; leave --budget out.")
        delta = self.delta if budget is not None or self.rho is not None else None
        return {"budget": budget, "rho": self.rho, "accounting": self.accounting, "delta": delta}

    def empty(
        self, budget: Fraction | None = None, ledger: Path | None = None, most: Fraction | None = None
    ) -> Collection:
        """A collection without records that is protected alike, with a budget in memory: mistakes show in it.

        Args:
            budget: The budget; without any, of epsilon or rho, there is no limit, nor one of delta.
            ledger: A ledger that is kept for as long as it is looked at, where tables share one.
            most: The rho that stands for no limit.

        Raises:
            SourceError, PlanError: It cannot be read or protected so.
        """
        from wpinq.protection import LIMITLESS, protect
        from wpinq.sources.tables.tuples import NoRecords

        reader = self.reader()
        name = self.name or reader.name
        endless = budget is None and self.rho is None
        owner = None if self.through is None else self._owner.empty(budget, ledger, most)
        made = protect(
            NoRecords(reader.schema), name=name, unit=self._whom(owner), where=self.where,
            derive=self.derive or None, ledger=ledger,
            **({"rho": most or LIMITLESS, "delta": Fraction(999, 1000)} if endless else self.promise(budget)),
        )  # fmt: skip
        return made.at_most("auto") if self.auto else made

    def limitless(self, ledger: Path | None = None, *, epsilons: bool = False) -> Collection:
        """The same with a budget that is never spent, whatever is asked.

        Args:
            ledger: See `empty`.
            epsilons: Whether the budget is a sum of epsilons, and not a rho: noise is as wide as it is there.
        """
        from wpinq.core import RHO
        from wpinq.protection import LIMITLESS, LIMITLESS_RHO

        if epsilons:
            return replace(self, rho=None, accounting=None, delta=Fraction(1, 2)).empty(LIMITLESS, ledger)
        most = LIMITLESS_RHO if self._adds == RHO else LIMITLESS
        return replace(self, rho=None, accounting=None).empty(None, ledger, most)

    @property
    def adds_epsilons(self) -> bool:
        """Whether its ledger, made or to be made, is a sum of epsilons and deltas alone."""
        from wpinq.core import PURE

        return self._adds == PURE

    @property
    def _adds(self) -> str:
        """What its ledger, made or to be made, adds up: the accounting of its promise."""
        from wpinq.core import PURE, RHO, Ledger

        with suppress(LedgerError):  # which is said when it is opened for the question
            if self.ledger is not None and (ledger := Ledger.find(self.ledger)) is not None:
                return ledger.promise.accounting
        return RHO if self.rho is not None else self.accounting or PURE

    def insist_on_a_number(self) -> None:
        """Refuse `--at-most auto` where no records are read for an answer.

        Raises:
            PlanError: It is asked for.
        """
        if self.unit is not None and self.unit.choice is not None:
            raise PlanError("--at-most auto: is chosen when records are read for an answer; here, give a number.")

    def protect(self, budget: Fraction | None) -> Collection:
        """Protect the records, with the budget that the data set has or is given."""
        import wpinq

        owner = None if self.through is None else self._owner.opened(budget)
        made = wpinq.protect(
            self.source,
            ledger=self.ledger,
            columns=parse_columns(self.columns),
            name=self.name,
            version=self.version,
            unit=self._whom(owner),
            where=self.where,
            derive=self.derive or None,
            **self.words,
            repeat=self.repeat,
            engine=self.engine,
            index=self.index or None,
            **self.promise(budget),
        )
        self._tell_form(made)
        return made.at_most("auto") if self.auto else made

    def opened(self, budget: Fraction | None) -> Collection:
        """The records, protected with this budget, or with that which their ledger has."""
        try:
            return self.protect(budget)
        except LedgerError as refused:
            try:
                return replace(self, rho=None).protect(None)
            except LedgerError:
                raise refused from None

    def _tell_form(self, made: Collection) -> None:
        """Say once, with a new ledger, which format of logs is taken for granted: the same whatever the lines are."""
        from wpinq.apps.cli.lines import say
        from wpinq.core import sources

        (data,) = sources(made._node)
        if data.ledger.made is None or self.words.get("format") is not None:
            return
        files = getattr(getattr(data.reader, "reader", data.reader), "source", None)
        if getattr(files, "form", None) == "log":
            say(
                f"{self.source} is read as a log of a web server in the common or combined format, and other lines are "
                "dropped; --format declares another format, and wpinq check tells how many lines fit."
            )

    def protect_to_spend(
        self, epsilon: Fraction | None, rho: Fraction | None = None, budget: Fraction | None = None
    ) -> Collection:
        """Protect the records in order to spend this of whatever their budget is.

        Args:
            epsilon: Of Laplace noise.
            rho: Instead, of Gaussian noise; or both, which together have a rho of epsilon^2 / 2 more at most.
            budget: Epsilon that a new ledger gets as its budget; by default what is spent.
        """
        whole = self._with_choice(epsilon)
        if budget is not None:
            return self.protect_as_allowed(budget, epsilon, rho)
        spender = self if rho is None or self.rho is not None else replace(self, rho=str(rho + whole**2 / 2))
        try:
            return spender.protect(whole if spender.rho is None else None)
        except LedgerError as refused:
            try:
                return self.protect(None)
            except LedgerError as error:  # where there is a ledger its budget was given by nobody
                raise (error if self._is_led else refused) from None

    def led(
        self, empty: Collection, budget: Fraction | None, *, epsilon: Fraction | None, rho: Fraction | None
    ) -> list[Ledger]:
        """The ledger that a question would open; none where it would be made.

        Args:
            empty: The collection without records.
            budget: The budget that was given.
            epsilon, rho: What the question costs.

        Raises:
            LedgerError: It would be refused: it is of other people, or has another unit or budget.
            PlanError, BudgetError: No such budget could pay.
        """
        from wpinq.core import Asked, Ledger, sources

        self.promise(budget)
        self.check_budget(budget, epsilon, rho)
        path = self._ledger_of(self.reader())
        ledger = None if path is None else Ledger.find(path)
        if ledger is not None:
            terms = Asked.of("--budget", budget, rho=self.rho, accounting=self.accounting)
            unit = sources(empty._node)[0].unit.whom
            ledger.check_table(self.name, unit, terms, shared=self.ledger is not None)
        return [] if ledger is None else [ledger]

    @property
    def _is_led(self) -> bool:
        """Whether there is a ledger."""
        from wpinq.core import Ledger

        ledger = self._ledger_of(self.reader())
        return ledger is not None and Ledger.exists(ledger)

    def _ledger_of(self, reader: Reader) -> Path | None:
        """Where its ledger is or will be: beside the records, if nothing else is said; None beside a database."""
        from wpinq.protection import beside

        return self.ledger or beside(reader.path)

    def _with_choice(self, epsilon: Fraction | None) -> Fraction:
        """What is spent, with what the choice of a bound costs."""
        choice = None if self.unit is None else self.unit.choice
        return (epsilon or Fraction(0)) + (Fraction(0) if choice is None else Fraction(choice.epsilon))

    def protect_as_allowed(self, budget: Fraction | None, epsilon: Fraction | None, rho: Fraction | None) -> Collection:
        """Protect the records with this budget, and with the delta that the ledger allows if there is one.

        Raises:
            PlanError, BudgetError: No budget of this kind could pay for this; no ledger is made then.
        """
        from wpinq.core import Asked, sources

        self.check_budget(budget, epsilon, rho)
        try:
            return self.protect(budget)
        except LedgerError as refused:
            try:
                result = replace(self, rho=None).protect(None)
            except LedgerError:
                raise refused from None
            held = sources(result._node)[0].ledger.promise
            wanted = Asked.of("--budget", budget, None, self.rho, self.accounting)
            if (held.budget, held.accounting) != (wanted.amount, wanted.accounting):
                raise
            return result

    def check_budget(self, budget: Fraction | None, epsilon: Fraction | None, rho: Fraction | None) -> None:
        """Refuse a budget of epsilons that could not pay for this.

        Raises:
            PlanError, BudgetError: It could not.
        """
        if budget is None or self.accounting == "renyi":
            return
        if rho is not None:
            raise PlanError("--rho: no epsilon bounds Gaussian noise, so --budget goes with --accounting renyi and "
                            "--delta; or leave it out.")  # fmt: skip
        if (whole := self._with_choice(epsilon)) > budget:
            raise BudgetError(f"--budget {decimal(budget)}: this costs epsilon {decimal(whole)}; nothing was charged.")

    def files(self) -> set[Path]:
        """The files that no output may replace.

        Raises:
            SourceError: The input is not there, or of no known format.
        """
        from wpinq.core import ENDS

        reader = self.reader()
        result = getattr(reader, "source", None)  # the files of a pattern; a database is one file, or none
        files = {file.path for file in result.files} if result else {reader.path} if reader.path else set()
        ledger = self._ledger_of(reader)
        if self.owner is not None:
            files |= self._owner.files()
        return files | {Path(f"{ledger}{end}").resolve() for end in ENDS if ledger}
