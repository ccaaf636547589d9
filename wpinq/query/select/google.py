"""Queries as Google's databases write them, read as those of PostgreSQL.

`SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=..., delta=..., privacy_unit_column=...)` (BigQuery, ZetaSQL; before
that `WITH ANONYMIZATION`) says in the text what `sql` takes as arguments. `CLAMPED BETWEEN a AND b`,
`contribution_bounds_per_row => (a, b)` and `ANON_SUM_WITH_BOUNDS(x, a, b)` are `bounds=`. What bounds a person there
(`max_groups_contributed`, `contribution_bounds_per_group`) is not done: here the bound on records of a person holds, as
the tables are protected. The answer says so.

Source: ZetaSQL, docs/query-syntax.md ("Differential privacy clause") and docs/aggregate-dp-functions.md; Google's
differential-privacy, cc/postgres/README.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from wpinq.core.functions.sql.bind import LONGEST
from wpinq.core.functions.sql.terms import shown
from wpinq.errors import PlanError
from wpinq.exact import exact
from wpinq.query.select.derived import CALL

if TYPE_CHECKING:
    from wpinq.core.plan.dataset import DataSet

CLAUSE = re.compile(
    r"\s*(?:EXPLAIN\s+)?SELECT\s+(WITH\s+(?:DIFFERENTIAL_PRIVACY|ANONYMIZATION)\b(\s*OPTIONS\s*\()?)", re.IGNORECASE
)
WORDS = re.compile(r"`|\bCLAMPED\b|contribution_bounds_per_|report_format|_WITH_BOUNDS\b|ANON_NTILE", re.IGNORECASE)
OPTION = re.compile(r"\s*(\w+)\s*=\s*([\w.+\-]+)\s*", re.IGNORECASE)
BOUNDED = {"kappa", "max_groups_contributed", "max_rows_contributed"}
NUMBER = r"\s*([+-]?[\d.]+(?:[eE][+-]?\d+)?)\s*"
NAMED = re.compile(rf",\s*contribution_bounds_per_(group|row)\s*=>\s*\({NUMBER},{NUMBER}\)", re.IGNORECASE)
CLAMPED = re.compile(rf"\bCLAMPED\s+BETWEEN{NUMBER}AND{NUMBER}", re.IGNORECASE)
REPORT = re.compile(r",\s*report_format\s*=>\s*\w+", re.IGNORECASE)
SUFFIX = "_WITH_BOUNDS"


@dataclass(frozen=True)
class Google:
    """What a text says beside its SELECT.

    Attributes:
        text: The SELECT in PostgreSQL's dialect; its words stand where they stood.
        epsilon: What it says that it costs; None where it does not.
        delta: The same.
        unit: The column of the people that it names; None where it does not.
        bounds: Of what is summed or ranked, the least and the largest number.
        notes: What was not done, as clauses.
    """

    text: str
    epsilon: str | None = None
    delta: str | None = None
    unit: str | None = None
    bounds: Mapping[str, tuple[Fraction, Fraction]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def with_terms(self, epsilon: Any, delta: Any) -> tuple[Any, Any]:
        """Epsilon and delta of a query: those of the call, or those that the text says.

        Raises:
            PlanError: Both say one, and not the same.
        """
        result = []
        for name, called, written in (("epsilon", epsilon, self.epsilon), ("delta", delta, self.delta)):
            if called is not None and written is not None and exact(called, CALL) != exact(written, CALL):
                raise PlanError(f"{CALL}: the query says {name}={written}, and the call {name}={called}; say it once.")
            result.append(written if called is None else called)
        return result[0], result[1]

    def check_unit(self, read: Sequence[DataSet]) -> None:
        """Refuse a unit that is not the one that is protected.

        Raises:
            PlanError: It is not.
        """
        for data in read if self.unit is not None else ():
            column = data.unit.column
            if column is None or column.lower() != str(self.unit).rpartition(".")[2].lower():
                protects = f"the people of its column {column}" if column else "each record"
                raise PlanError(f"{CALL}: privacy_unit_column={self.unit}: table {data.name!r} protects {protects}, as "
                                "protect(unit=users(COLUMN)) said; name that column.")  # fmt: skip

    def with_bounds(self, bounds: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """The bounds of the call, and those of the text, which go before."""
        return {**(bounds or {}), **self.bounds} if self.bounds else bounds


@lru_cache(maxsize=64)
def google(query: str) -> Google:
    """Read what is Google's in a text; one that has nothing of it is given back.

    Raises:
        PlanError: An option is not known, or an aggregate is clamped in two ways.

    >>> google("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=2) AVG(n CLAMPED BETWEEN 0 AND 9) FROM t").bounds
    {'n': (Fraction(0, 1), Fraction(9, 1))}
    """
    clause = CLAUSE.match(query)
    if len(query) > LONGEST or (clause is None and not WORDS.search(_hidden(query))):
        return Google(query)
    text, options = query, {}
    if clause is not None:
        end = _closed(query, clause.end() - 1) if clause[2] else clause.end()
        options = _options(query[clause.end() : end - 1]) if clause[2] else {}
        text = _blank(query, clause.start(1), end)
    if clause is not None or "`" in _hidden(text):
        text = _quoted(text)
    text, bounds, notes = _clamped(text)
    notes += [f"{name}={options[name]} is not applied: the bound on each person's records holds"
              for name in options if name in BOUNDED]  # fmt: skip
    return Google(
        text, options.get("epsilon"), options.get("delta"), options.get("privacy_unit_column"), bounds, tuple(notes)
    )


def _options(text: str) -> dict[str, str]:
    """The options of the clause.

    Raises:
        PlanError: One is not known.
    """
    result: dict[str, str] = {}
    for part in text.split(",") if text.strip() else []:
        option = OPTION.fullmatch(part)
        name = option[1].lower() if option else ""
        if option is None or name not in {"epsilon", "delta", "privacy_unit_column", *BOUNDED} or name in result:
            raise PlanError(f"{CALL}: OPTIONS({shown(part.strip())}) is not read; there are epsilon, delta, "
                            "privacy_unit_column and max_groups_contributed, each as NAME=VALUE.")  # fmt: skip
        result[name] = option[2]
    return result


def _closed(text: str, opened: int) -> int:
    """The place behind the parenthesis that closes one.

    Raises:
        PlanError: None does.
    """
    depth = 0
    for place in range(opened, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    raise PlanError(f"{CALL}: this is not SQL: a parenthesis is open; check OPTIONS(...).")


def _blank(text: str, start: int, end: int) -> str:
    """A text without a part, in whose place there are blanks."""
    return text[:start] + " " * (end - start) + text[end:]


def _quoted(text: str) -> str:
    """Names in backticks and texts in double quotes, as PostgreSQL quotes them."""

    def other(part: re.Match[str]) -> str:
        inner = part[0][1:-1]
        if part[0][0] == "`":
            return '"' + inner.replace('"', '""') + '"'
        return part[0] if part[0][0] == "'" else "'" + inner.replace("'", "''") + "'"

    return re.sub(r"`[^`]*`|\"[^\"]*\"|'(?:[^']|'')*'", other, text)


def _clamped(text: str) -> tuple[str, dict[str, tuple[Fraction, Fraction]], list[str]]:
    """The text without clamping, the bounds that it says, and what they do not do."""
    bounds: dict[str, tuple[Fraction, Fraction]] = {}
    notes: list[str] = []
    for report in list(REPORT.finditer(_hidden(text)))[::-1]:
        text = _blank(text, *report.span())
        notes = ["report_format is not applied: every answer has its intervals"]
    for name, start, end in list(_calls(text))[::-1]:  # the last ones first, so that places stay what they are
        inner, ends, per_group = _without_ends(name, text[start:end])
        if ends is None:
            continue
        called = name.removesuffix(SUFFIX).removeprefix("ANON_")
        if called == "COUNT":
            notes.append("a count is not clamped for each person: the bound on each person's records holds")
        else:
            what, numbers = _first(inner).strip(), (exact(ends[0], CALL), exact(ends[1], CALL))
            if bounds.setdefault(what, numbers) != numbers:
                raise PlanError(f"{CALL}: {shown(what)} is clamped in two ways; clamp it alike in one query.")
            if per_group:
                notes.append(f"{shown(what)} is clamped record by record, not for each person and group")
        text = text[:start] + inner.ljust(end - start) + text[end:]
    return text, bounds, list(dict.fromkeys(notes[::-1]))


def _hidden(text: str) -> str:
    """A text as long, in which nothing stands in quotes."""
    return re.sub(r"\"[^\"]*\"|'(?:[^']|'')*'", lambda part: "x" * len(part[0]), text)


def _calls(text: str) -> Iterator[tuple[str, int, int]]:
    """Each call of a function: its name, and where its arguments begin and end."""
    hidden = _hidden(text)
    for call in re.finditer(r"\b([A-Za-z_]\w*)\s*\(", hidden):
        yield call[1].upper(), call.end(), _closed(hidden, call.end() - 1) - 1


def _without_ends(name: str, inner: str) -> tuple[str, Sequence[str] | None, bool]:
    """The arguments of an aggregate without its bounds, these, and whether they are of a person in a group."""
    hidden = _hidden(inner)
    for pattern in (NAMED, CLAMPED):
        match = next((part for part in pattern.finditer(hidden) if not _depth(hidden[: part.start()])), None)
        if match is not None:
            per_row = name.endswith(("PERCENTILE_CONT", "VAR_POP", "STDDEV_POP", "QUANTILES"))
            per_group = match[1] == "group" if pattern is NAMED else not per_row
            rest = inner[: match.start()].rstrip() + inner[match.end() :]
            return rest, match.groups()[-2:], per_group
    parts = _parts(inner)
    if name.endswith(SUFFIX) and len(parts) == 3:
        return parts[0], (parts[1].strip(), parts[2].strip()), False
    if name == "ANON_NTILE" and len(parts) == 4:
        return ",".join(parts[:2]), (parts[2].strip(), parts[3].strip()), False
    return inner, None, False


def _depth(text: str) -> int:
    return text.count("(") - text.count(")")


def _parts(inner: str) -> list[str]:
    """Arguments, at commas that stand in no parentheses."""
    result, depth = [""], 0
    for letter in inner:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            result.append("")
        else:
            result[-1] += letter
    return result


def _first(inner: str) -> str:
    return _parts(inner)[0]
