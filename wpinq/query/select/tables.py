"""The tables of a query: protected ones, whose rows are paired, and public ones, looked up record by record.

An inner or left join with a public table, on equality with a key that is unique there, gives each record at most one
partner. So its columns are functions of the record, `key -> value`, and the join costs nothing.

**WHERE below joins.** A condition of WHERE that looks at one record of one protected table is asked of that table
before its people are bounded, and before it is joined: what it leaves out takes no places of the bound, and of an inner
join the rows are the same, since a row fulfils it where its record does. So it is for the preserved side of a left
join, and not for the other: `b.x IS NULL` keeps rows that have no b, and `b.x = 1` leaves out those that a b without it
would leave alone. A condition of ON that looks at one record of the table that is joined is asked of that table, of
either join: it says with which records a row may meet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wpinq.collection import Collection
from wpinq.core.functions.sql.bind import column, named, suggestion, translator
from wpinq.core.functions.sql.terms import Term, shown
from wpinq.core.functions.sql.translator import Translator
from wpinq.core.functions.tree import Node as Value
from wpinq.core.functions.tree import col
from wpinq.core.records.schema import Kind, Schema
from wpinq.errors import PlanError
from wpinq.query.select.catalogue import Catalogue, brought
from wpinq.query.select.derived import CALL, Degrees, Derived, Reach, Rows, base_columns, identifier, plainly, schema_of
from wpinq.query.select.joins import WHY, conjuncts, equalities, implied, paired
from wpinq.query.select.public_rows import PublicRows, looked_up

if TYPE_CHECKING:
    from sqlglot import exp

MIXED = (
    "of a left join with a public table, conditions of ON that look at a record and its row at once go to WHERE, or to "
    "CASE; those on one of them are answered"
)


WINDOWS = "\0windows"
"""The table that columns of windows are of."""


class Tables:
    """The tables of a query, and the columns for which its names stand.

    Attributes:
        base: The protected collection, with the columns of public tables that it was joined with; in a subquery it may
            be public.
    """

    def __init__(
        self, known: Mapping[str, Any], first: Any, joins: Sequence[Any], derive: Callable[[Any], Derived], *,
        where: Any = None, before: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:  # fmt: skip
        self._catalogue, self._where, self._before = Catalogue(known, derive), where, before or {}
        self._people: set[str] = set()  # tables whose people are bounded, of which WHERE may be asked before
        self._columns: dict[str, dict[str, Term]] = {}
        self._derived: dict[str, Derived] = {}
        self._led: set[tuple[str, str]] = set()  # owners that a way brings
        self.base: Rows
        written = [str(entry.alias_or_name).lower() for entry in (first, *(entry.this for entry in joins))]
        first, joins = self._catalogue.protected_first(first, list(joins), where)
        alias, result = self._table(first)
        self.base = result if isinstance(result, Collection) else self._catalogue.public(result, alias)
        result = self.base
        self._columns[alias] = base_columns(result)
        self._merged: set[tuple[str, str]] = set()  # columns of USING: without a table, that of the first one is meant
        self._base_names = {(alias, name): name for name in result.columns}  # columns of the base, by table and name
        self._using: list[str] = []  # names of USING, as a star shows them
        for join in joins:
            self._join(join)
        if {alias.lower() for alias in self._columns} <= set(written):  # a star shows tables as FROM names them
            self._columns = dict(sorted(self._columns.items(), key=lambda item: written.index(item[0].lower())))

    def windowed(self, rows: Collection, kinds: Mapping[str, Kind]) -> None:
        """The rows from now on, which have columns of windows beside those that they had."""
        self.base = rows
        self._columns[WINDOWS] = {name: Term(col(name), kind, name) for name, kind in kinds.items()}

    @property
    def movable(self) -> dict[str, list[Any]]:
        """The conditions of WHERE that each table can be asked for before it is bounded and joined."""
        from sqlglot import exp

        result: dict[str, list[Any]] = {}
        if len(self._columns) == 1 or self._where is None:
            return result
        for part in conjuncts(self._where.this):
            if part.find(exp.Query, exp.AggFunc, exp.Window) is not None:
                continue
            try:
                condition = part.transform(self._located)
            except PlanError:  # which is said where WHERE is read
                continue
            sides = self._sides(condition)
            if len(sides) == 1 and sides <= self._people:
                result.setdefault(sides.pop(), []).append(condition)
        return result

    def pushed_down(self, part: Any) -> bool:
        """Whether a condition of WHERE was asked of its table already."""
        if not self._before:
            return False
        try:
            condition = part.transform(self._located)
        except PlanError:
            return False
        return any(condition in parts for parts in self._before.values())

    def resolve(self, node: exp.Expression) -> Term:
        """A column, by its canonical name.

        Raises:
            PlanError: It may hold values of any type.
        """
        term = self._columns[node.text("table")][node.name]
        if term.kind is Kind.ANY:
            raise PlanError(f"{CALL}: column {term.text} may hold values of any type; declare one with columns= where "
                            "the table is protected, or where it is derived by a function, by '-> str' of that or by "
                            f"derive={{{node.name!r}: (function, str)}}.")  # fmt: skip
        return term

    def bare(self, node: exp.Expression) -> Term:
        """A column that is only passed on, of whatever type."""
        return self._columns[node.text("table")][node.name]

    def canonical(self, node: exp.Expression) -> exp.Expression | None:
        """A column with its table's name and its own, as they are spelled; None if there is none.

        Raises:
            PlanError: Several tables have it, or its table is not there.
        """
        from sqlglot import exp

        table, schema = node.args.get("table"), node.text("db").lower()
        if node.text("catalog") or (schema and self._catalogue.schemas.get(node.text("table").lower()) != schema):
            raise PlanError(f"{CALL}: {shown(node)}: write table.column.")
        aliases = [named(table, list(self._columns), CALL, "table")] if table else list(self._columns)
        result = []
        for alias in aliases:
            try:
                result.append((alias, named(node.this, list(self._columns[alias]), CALL)))
            except PlanError:
                if table:
                    raise
        result = [column for column in result if table or column not in self._merged]
        result = [column for column in result if column not in self._led] or result
        if len(result) > 1:
            raise PlanError(
                f"{CALL}: {shown(node)} is a column of {' and '.join(alias for alias, _ in result)}; say which."
            )
        return exp.column(result[0][1], table=result[0][0], quoted=True) if result else None

    def missing(self, node: exp.Expression) -> PlanError:
        """That no table has a column."""
        hint = suggestion(node.name, [name for columns in self._columns.values() for name in columns])
        tables = [table for table in self._catalogue.tables.values() if isinstance(table, Collection)]
        left_out = "".join(dict.fromkeys(schema_of(table).lacks for table in tables))
        return PlanError(f"{CALL}: no column {shown(node)}; there are {self.names}{left_out}.{hint}")

    @property
    def translator(self) -> Translator:
        """Translates expressions over the columns of the tables."""
        return translator(self.resolve, CALL, spelled=plainly)

    @property
    def names(self) -> str:
        """All columns, for messages: in quotes where a query needs them, so that no name reads as our sentence."""
        from sqlglot import exp

        return ", ".join(
            f"{alias}.{name if name.isidentifier() else exp.to_identifier(name, quoted=True).sql('postgres')}"
            for alias, columns in self._columns.items()
            for name in columns
        )

    def has(self, node: Any) -> bool:
        """Whether a column, as it is written, is one of these tables, or of several of them."""
        try:
            return self.canonical(node) is not None
        except PlanError:
            return not node.args.get("table")

    def base_name(self, node: Any) -> str | None:
        """What a column of a protected table, as it is written, is called in the records; None for anything else."""
        column = self.canonical(node) if type(node).__name__ == "Column" else None
        return None if column is None else self._base_names.get((column.text("table"), column.name))

    def written(self, name: str) -> Any:
        """A column of the records, as a query would write it."""
        from sqlglot import exp

        table, column = next(key for key, base_name in self._base_names.items() if base_name == name)
        return exp.column(column, table=table, quoted=True)

    def reach(self, node: exp.Expression) -> Reach | None:
        """The bounds of a canonical column that a subquery made, where it says them."""
        made = self._derived.get(node.text("table"))
        return None if made is None else made.reach.get(node.name)

    @property
    def degrees(self) -> Degrees | None:
        """How the only table counts records by key, if that is all that it does."""
        made = list(self._derived.values())
        return made[0].degrees if len(self._columns) == 1 and made else None

    def computed(self, node: exp.Expression) -> bool:
        """Whether a canonical column is what a subquery computed."""
        made = self._derived.get(node.text("table"))
        return made is not None and node.name in made.computed

    def all_columns(self, table: Any) -> list[exp.Expression]:
        """The columns that a star stands for, of one table or of all; those of USING once, and before the others."""
        from sqlglot import exp

        aliases = [named(table, list(self._columns), CALL, "table")] if table else list(self._columns)
        columns = [(alias, name) for alias in aliases for name in self._columns[alias]]
        if not table:
            columns = [column for column in columns if column not in self._merged]
            columns.sort(
                key=lambda column: self._using.index(column[1]) if column[1] in self._using else len(self._using)
            )
        return [exp.column(name, table=alias, quoted=True) for alias, name in columns]

    def _table(self, node: Any) -> tuple[str, Any]:
        """The name by which columns refer to a table, and its rows."""
        alias, table = self._catalogue.table(node, len(self._columns) + 1)
        if alias in self._columns:
            raise PlanError(f"{CALL}: two tables are called {shown(alias)}; name one with AS.")
        if not isinstance(table, Derived):
            owner = brought(table)
            if owner is not None:
                self._led.add((alias, owner))
            if isinstance(table, Collection) and table._node.bounds_units is not None:
                self._people.add(alias)
                table = self._fulfilling(alias, table, self._before.get(alias, ()))
            return alias, table
        self._derived[alias] = table
        return alias, table.rows

    def _fulfilling(self, alias: str, rows: Collection, conditions: Sequence[Any]) -> Collection:
        """The records of a table that is not joined yet which fulfil some conditions on its columns."""
        if not conditions:
            return rows
        known, self._columns[alias] = self._columns.get(alias), base_columns(rows)
        for condition in conditions:
            rows = rows.filter(self.translator.condition(condition).value)
        del self._columns[alias]
        if known is not None:
            self._columns[alias] = known
        return rows

    def _join(self, join: Any) -> None:
        args = {name for name, value in join.args.items() if value}
        natural = join.text("method") == "NATURAL"
        kind = ("" if natural else join.text("method"), join.text("side"), join.text("kind"))
        listed = not natural and kind in {("", "", ""), ("", "", "CROSS")} and not args & {"on", "using"}
        known = kind in {("", "", ""), ("", "", "INNER"), ("", "LEFT", ""), ("", "LEFT", "OUTER")}
        if not listed and not (known and (natural or args & {"on", "using"})):
            raise PlanError(f"{CALL}: {shown(join)}: only JOIN and LEFT JOIN, each ON an equality, make no row that "
                            "no record stands for; a RIGHT JOIN is a LEFT JOIN in the other order.")  # fmt: skip
        alias, result = self._table(join.this)
        if join.text("side") == "LEFT":
            self._people.discard(alias)
        if not isinstance(self.base, Collection):
            raise PlanError(f"{CALL}: {shown(join)}: name the protected table in FROM, and join the others; "
                            "public tables that come before it are joined by equalities of table.column.")  # fmt: skip
        join = self._natural(join, alias, result) if natural else join
        using = [column.name for column in join.args.get("using") or ()]
        self._merged |= {(alias, name) for name in using}
        self._using = list(dict.fromkeys([*using, *self._using]))
        if isinstance(result, Collection):
            self._pair(join, alias, result)
            return
        self._look_up(join, alias, self._catalogue.public(result, alias))

    def _natural(self, join: Any, alias: str, other: Any) -> Any:
        """NATURAL JOIN as what it stands for: USING the columns that both have."""
        names = (other if isinstance(other, Collection) else self._catalogue.public(other, alias)).columns
        before, result = dict.fromkeys(name for columns in self._columns.values() for name in columns), join.copy()
        result.set("using", [identifier(name).this for name in before if name in names])
        return result

    def _pair(self, join: Any, alias: str, other: Collection) -> None:
        """Join another protected table, whose columns are those of the rows from now on.

        Raises:
            PlanError: It is no join on columns of both, or see `paired`.
        """
        keys, others = self._equal(join, alias, other)
        if not keys:
            raise PlanError(f"{CALL}: {shown(join)} {WHY}.")
        table_conditions = [condition for condition in others if self._sides(condition) == {alias}]
        rest = [condition for condition in others if condition not in table_conditions]
        if rest and join.text("side") == "LEFT":
            raise PlanError(f"{CALL}: {shown(join)}: of a left join, ON has equalities with {shown(alias)} and"
                            f" conditions on its columns alone; others go to WHERE, or to CASE.")  # fmt: skip
        self.base, names = paired(self.base, self._fulfilling(alias, other, table_conditions), keys, join)
        terms = base_columns(self.base)
        self._columns[alias] = {old: replace(terms[new], text=f"{alias}.{old}") for old, new in names.items()}
        self._base_names |= {(alias, old): new for old, new in names.items()}
        for condition in rest:
            self.base = self.base.filter(self.translator.condition(condition).value)

    def _equal(self, join: Any, alias: str, other: Collection) -> tuple[list[tuple[str, str]], list[Any]]:
        """The columns of what was read so far that equal columns of another table, and the other conditions of ON."""
        using = join.args.get("using") or ()
        if using:
            before = {name: base_name for (_, name), base_name in self._base_names.items()}
            names = [column.name for column in using if column.name in before and column.name in other.columns]
            return [(before[name], name) for name in names], []
        self._columns[alias] = base_columns(other)
        keys, others = [], []
        for part in conjuncts(join.args.get("on") or implied(self._where, self._read, alias, join)):
            located = part.transform(self._located)
            columns = [[(side.text("table"), side.name) for side in sides] for sides in equalities(located)]
            columns = [sorted(pair, key=lambda column: column[0] == alias) for pair in columns]
            met = [
                (self._base_names[ours], theirs[1])
                for ours, theirs in columns
                if ours in self._base_names and theirs[0] == alias
            ]
            keys += met
            others += [] if met else [located]
        return keys, others

    def _look_up(self, join: Any, alias: str, public: PublicRows) -> None:
        """Join a public table, whose columns are those of the rows from now on.

        Conditions of ON that look at the table alone say which of its rows there are, and those that look at a record
        alone, which records have a row; of a left join the others keep theirs.
        """
        columns = {column.name: column.kind for column in public.schema if column.kind is not Kind.ANY}
        self._columns[alias] = {name: column(identifier(name), public.schema, CALL) for name in columns}
        keys, others = self._keys(join, alias, public.schema)
        sides = [self._sides(condition) for condition in others]
        rest = [condition for condition, read in zip(others, sides, strict=True) if alias in read and read != {alias}]
        required = join.text("side") != "LEFT"
        if rest and not required:
            raise PlanError(f"{CALL}: {shown(join)}: {MIXED}.")
        met: Value | None = None
        for condition, read in zip(others, sides, strict=True):
            if read == {alias}:
                public = public.filter(self.translator.condition(condition).value)
            elif condition not in rest:
                value = self.translator.condition(condition).value
                met = value if met is None else met & value
        made = looked_up(
            self.base._node, alias, public, keys, list(columns), met=met, required=required, text=shown(join)
        )
        self.base = self.base._then(made)
        for name, output in zip(columns, made.schema.columns[len(made.kept) :], strict=True):
            self._columns[alias][name] = Term(col(output.name), output.kind, f"{alias}.{name}")
        for condition in rest:
            self.base = self.base.filter(self.translator.condition(condition).value)

    def _keys(self, join: Any, alias: str, schema: Schema) -> tuple[list[tuple[Term, Term]], list[Any]]:
        """What is looked up, and what of the public table it is looked up in: each an expression over one row.

        Beside them the other conditions of ON.
        """
        using, on = join.args.get("using") or (), join.args.get("on")
        others = {name: table for name, table in self._columns.items() if name != alias}
        keys, rest = [], []
        for key in using:
            terms = [
                t[key.name] for name, t in others.items() if key.name in t and (name, key.name) not in self._merged
            ]
            if len(terms) == 1:
                keys.append((terms[0], self._columns[alias][named(key, schema.names, CALL)]))
        if not using:
            on = implied(self._where, self._read, alias, join) if on is None else on
            parts = [part.transform(self._located) for part in conjuncts(on)]
            for part in parts:
                sides = [part.this, part.expression] if type(part).__name__ == "EQ" else []
                sides.sort(key=lambda side: self._sides(side) == {alias})
                read = [self._sides(side) for side in sides]
                if read and read[1] == {alias} and alias not in read[0] and (read[0] or len(parts) == 1):
                    keys.append((self.translator.term(sides[0]), self.translator.term(sides[1])))
                else:
                    rest.append(part)
        if not keys or len(keys) < len(using):
            raise PlanError(f"{CALL}: {shown(join)}: join ON an equality, between an expression over columns of "
                            f"{shown(alias)} and one over those of the tables before it.")  # fmt: skip
        return keys, rest

    def _located(self, node: Any) -> Any:
        """A column by its canonical name, inside of an expression.

        Raises:
            PlanError: There is none.
        """
        if type(node).__name__ != "Column":
            return node
        result = self.canonical(node)
        if result is None:
            raise self.missing(node)
        return result

    def _read(self, node: Any) -> set[str]:
        """The tables whose columns an expression reads, as it is written."""
        return self._sides(node.transform(self._located))

    @staticmethod
    def _sides(node: Any) -> set[str]:
        """The tables whose columns an expression reads."""
        from sqlglot import exp

        return {item.text("table") for item in node.find_all(exp.Column)}
