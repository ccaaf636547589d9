"""Audit a dataflow: random records with and without one privacy unit, until something differs that must not."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, NamedTuple

from wpinq.arguments import MAPPING, NOTHING, WHOLE, Expected, instance, takes
from wpinq.collection import Collection
from wpinq.core.plan.node import sources
from wpinq.errors import PlanError, WpinqError
from wpinq.protection import protect
from wpinq.streaming.source import live
from wpinq.testing.case import Case, Drawing, constants, in_text, smaller
from wpinq.testing.evaluation import leaves
from wpinq.testing.judge import WAYS, Finding, judge
from wpinq.testing.probes import probed
from wpinq.testing.trial import PROMISE, SECRET, run
from wpinq.testing.watch import watched

CALLABLE, NUMBER = Expected("a function", callable), instance("a number", int, float)
SHRINKING = 20.0
"""Seconds in which a case is made small."""
PROBED = 10
"""One in so many cases tries the functions by themselves."""
PROMISES: tuple[Mapping[str, Any], ...] = (PROMISE, {"rho": 10**9, "delta": "1/2"})
"""Ledgers to ask: one of epsilons, and one that has Gaussian noise too."""


class Counterexample(NamedTuple):
    """What an audit found.

    Attributes:
        finding: What is wrong.
        case: The smallest records that were found for which it is.
        way: In which other way they were computed.
    """

    finding: Finding
    case: Case
    way: str

    def program(self, load: str) -> str:
        """A script that shows it again.

        Args:
            load: Lines of Python that define `dataflow`.
        """
        title = " ".join(str(self.finding).split()).replace("\\", "").replace('"""', "'''")
        return (
            f'"""What an audit found. {title}"""\n\nimport datetime as dt\nfrom math import inf, nan\n\nimport wpinq\n'
            f"from wpinq.testing import Case, recheck\n\n{load}\n\ncase = {self.case!r}\n\n"
            f'for finding in recheck(dataflow, case, way="{self.way}"):\n    print(finding)\n'
        )


@dataclass
class Audit:
    """What an audit did.

    Attributes:
        cases: How many pairs of neighbours were tried.
        seconds: How long it took.
        counterexample: What was found; None where nothing was.
        notes: What is no fault, and what the author of a dataflow may not know.
        modes: Over which sources it was run: "finite", "live" or both.
        load: Python that defines the dataflow, for the program that shows what was found.
    """

    cases: int = 0
    seconds: float = 0.0
    counterexample: Counterexample | None = None
    notes: list[str] = field(default_factory=list)
    modes: tuple[str, ...] = ()
    load: str = ""

    @property
    def program(self) -> str:
        """The counterexample as a script that runs; empty where there is none."""
        return self.counterexample.program(self.load) if self.counterexample else ""

    def __bool__(self) -> bool:
        """Whether nothing was found."""
        return self.counterexample is None

    def __str__(self) -> str:
        over = " and ".join(f"{mode} sources" for mode in self.modes)
        head = f"{self.cases} pairs of neighbours over {over} in {self.seconds:.1f} s"
        if self.counterexample is None:
            lines = [f"{head}: nothing found"]
        else:
            lines = [f"{head}: found", f"  {self.counterexample.finding}", "", self.program]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


@takes(
    dataflow=CALLABLE, columns=MAPPING, cases=WHOLE, seconds=NUMBER | NOTHING, seed=WHOLE,
    values=instance("a list of values", list, tuple),
)  # fmt: skip
def audit(
    dataflow: Callable[[Collection], Any], columns: Mapping[str, Any], *, unit: Any = None, where: object = None,
    derive: Mapping[str, object] | None = None, weight: str | None = None, max_weight: Any = None, cases: int = 200,
    seconds: float | None = None, seed: int = 0, values: Sequence[Any] = (), load: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Audit:  # fmt: skip
    """Search for a privacy unit that a dataflow shows more of than it is charged for.

    Records are made up from the columns: nulls, NaN, empty text, values that the dataflow compares with, records that
    repeat, persons with more records than their bound. Each case is run with and without one unit, and computed by all
    engines, in several orders and, where the dataflow runs over a live source, in several epochs and batches. The true
    histograms of both runs are compared: how far they move, with what their noise hides and the ledger was charged;
    which bins only the unit is in; what was called, said, charged and failed. No protected record is read, and nothing
    is charged. Where a script observes before it goes on, both runs are answered alike, so what differs comes from the
    records. Source: Re:cord-play (arXiv 2602.17454), whose idea this is.

    Args:
        dataflow: Is given a protected collection, and measures what it will; what it returns is not looked at.
        columns: Names and types of the columns, as `protect` takes them.
        unit, where, derive, weight, max_weight: As `protect` takes them.
        cases: How many pairs of neighbours to try; the first are the same in every run of one seed.
        seconds: Stop after as many, and after one case at the earliest; by default after all cases.
        seed: Chooses the cases.
        values: Further values to draw from, beside those that are found in the code.
        load: Python that defines `dataflow`, for the program that shows what was found; by default it is loaded from
            the file that defines it.
        progress: Is called with 1 after each case.

    Returns:
        What was found. It is true where nothing was.

    Raises:
        PlanError: The dataflow fails over no records, or asks nothing; or there is no case to try.

    A function that remembers other records is found, and made small:

    >>> from wpinq.testing import audit
    >>> seen = []
    >>> def numbered(page):
    ...     seen.append(page)
    ...     return len(seen)
    >>> result = audit(lambda views: views.map(numbered, columns={"n": int}).measure(epsilon=1), {"page": "text"})
    >>> result.counterexample.finding.kind
    'function'
    >>> bool(audit(lambda views: views.map("page").measure(epsilon=1), {"page": "text"}, cases=5))
    True
    """
    if cases < 1:
        raise PlanError("audit(cases=...): takes a whole number above zero.")
    words = {"unit": unit, "where": where, "derive": derive, "weight": weight, "max_weight": max_weight}
    search = Search(dataflow, columns, words, seed, values)
    begun, result = time.monotonic(), Audit(modes=search.modes, load=load or loading(dataflow))
    end = begun + (float("inf") if seconds is None else seconds)
    notes: dict[str, None] = {}
    for number in range(cases):
        if number and time.monotonic() > end:  # what tried nothing would find nothing
            break
        case, way = search.case(number)
        result.cases += 1
        if findings := search.check(case, way, notes, probing=number % PROBED < 2):
            result.counterexample = search.shrunk(findings[0], case, way)
            break
        if progress is not None:
            progress(1)
    result.seconds, result.notes = time.monotonic() - begun, list(notes)
    return result


def recheck(dataflow: Callable[[Collection], Any], case: Case, way: str = "") -> list[Finding]:
    """Try one case again: what is wrong with a dataflow on its records.

    Args:
        dataflow: As `audit` was given it.
        case: As an audit printed it.
        way: In which other way its histograms are computed: "reference", "bytewax", "order",
            "shards", "tuples" or "pieces".
    """
    return Search(dataflow, case.columns, case.words, 0, ()).check(case, way, {}, probing=True)


class Search:
    """What is known of a dataflow before any records are made up."""

    def __init__(
        self, dataflow: Callable[..., Any], columns: Mapping[str, Any], words: Mapping[str, Any], seed: int,
        values: Sequence[Any],
    ) -> None:  # fmt: skip
        self.dataflow = dataflow
        self.words = {name: value for name, value in words.items() if value is not None}
        self.modes, self.promise, self.whole = self._rehearsed(columns)
        made = protect([], 1, columns=columns, **self.words)
        schema = leaves(made)[0].schema
        met = [*constants(inspect.unwrap(dataflow)), *_texts(self.words), *values]
        self.drawing = Drawing(schema, self.words, seed, met)

    def _rehearsed(self, columns: Mapping[str, Any]) -> tuple[tuple[str, ...], Mapping[str, Any], bool]:
        """Over which sources the dataflow runs where there are no records, and what its ledger must promise."""
        refused: dict[str, str] = {}
        for promise in PROMISES:
            words = {**self.words, **promise, "secret": SECRET}
            modes = []
            whole = True
            for mode in ("finite",) if "weight" in words else ("finite", "live"):
                try:
                    views = protect([], columns=columns, **words) if mode == "finite" else live(columns, **words)
                    with watched("local") as observed:
                        self.dataflow(views)
                except WpinqError as error:
                    refused[mode] = str(error)
                    continue
                rows = [row.kind for row in sources(views._node)[0].ledger.entries()]
                if not observed.questions:
                    refused[mode] = "it asks nothing."
                    continue
                whole = whole and not set(rows) - {"open", "charge", "checkpoint"}
                modes.append(mode)
            if modes:
                return tuple(modes), promise, whole
        reasons = " ".join(f"Over a {mode} source: {text}" for mode, text in refused.items())
        raise PlanError(f"audit: the dataflow fails where there are no records. {reasons}")

    def case(self, number: int) -> tuple[Case, str]:
        """The case of a number, and in which other way it is computed."""
        mode = self.modes[number % len(self.modes)]
        way = "pieces" if mode == "live" else WAYS[number // len(self.modes) % len(WAYS)]
        return self.drawing.case(number, live=mode == "live"), way

    def check(self, case: Case, way: str, notes: dict[str, None], *, probing: bool) -> list[Finding]:
        """What is wrong with a case: first of the functions by themselves, for that says more."""
        if probing:
            finite = replace(case, live=False) if "finite" in self.modes else case
            if findings := list(probed(self.dataflow, finite, notes, promise=self.promise)):
                return findings
        return judge(self.dataflow, case, way, whole=self.whole, promise=self.promise)

    def shrunk(self, finding: Finding, case: Case, way: str) -> Counterexample:
        """A smaller case with a finding of the same kind."""
        end, probing = time.monotonic() + SHRINKING, finding.kind == "function"
        trying = True
        while trying:
            trying = False
            for candidate in smaller(case):
                if time.monotonic() > end:
                    break
                same_kind = [f for f in self.check(candidate, way, {}, probing=probing) if f.kind == finding.kind]
                if same_kind:
                    finding, case, trying = same_kind[0], candidate, True
                    break
        return Counterexample(finding, case, way)


def loading(dataflow: Callable[..., Any]) -> str:
    """Python that defines a dataflow again, from the file that does."""
    function = inspect.unwrap(dataflow)
    path, name = (
        inspect.getsourcefile(function) if inspect.isfunction(function) else None,
        getattr(function, "__name__", ""),
    )
    if path is None or not name.isidentifier():
        return "dataflow = ...  # the dataflow that was audited"
    return f"import runpy\n\ndataflow = runpy.run_path({path!r})[{name!r}]"


def digest(dataflow: Callable[..., Any], columns: Mapping[str, Any], *, seed: int = 0, **words: Any) -> str:
    """A digest of what some cases give, to compare two processes: sets have another order in each."""
    search = Search(dataflow, columns, words, seed, ())
    hasher = blake2b(digest_size=16)
    for number in range(PROBED):
        case, _ = search.case(number)
        trace = run(search.dataflow, case, promise=search.promise)
        for question in trace.watched.questions:
            hasher.update(repr((sorted((question.content or {}).items()), sorted(question.changes.items()))).encode())
    return hasher.hexdigest()


def _texts(words: Mapping[str, Any]) -> list[Any]:
    """The constants in SQL of where and derive."""
    conditions = [words.get("where"), *(words.get("derive") or {}).values()]
    return [constant for text in conditions if isinstance(text, str) for constant in in_text(text)]
