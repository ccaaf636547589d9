"""The people index: the records of a version by person, so that a new question about people is one linear pass.

A bound on people's records needs those of a person together, in the order of their ranks (`contribution/sample.py`).
Neither changes from question to question. So once a second question about a version comes, its records are grouped by
person, in the order of their ranks, and held: filters are asked, and the first records of each person that are left are
the sample. It is the same sample, bit for bit, as without the index, because a filter looks at one record at a time.

Each question passes over all records. Nothing is skipped because a text is in no record or a person is not there: the
time of a question would tell it. The index holds what the source held when it was made, in the memory of this process,
and is gone with it. Where it would take more than a quarter of what counting may hold, there is none.

Whoever asks for it (`protect(index=True)`) has it in a file beside the ledger, too (`people_file.py`). It is made with
the first question then, whatever its size, and used by all processes. No answer, price, refusal or row of the ledger
depends on whether there is an index, and what verifies answers reads the source.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial

import polars as pl

from wpinq.core import kernels
from wpinq.core.kernels.people import Stays
from wpinq.core.operators.contribution.preprocess import Derive
from wpinq.core.operators.contribution.sample import Bound, BoundBySource
from wpinq.core.operators.filter import Filter
from wpinq.core.plan.dataset import DataSet
from wpinq.core.plan.node import Node, Source, fingerprints, rewrite_all, steps
from wpinq.core.records.reader import HeldReader, Reader
from wpinq.core.runs.people_file import Filed, PeopleFile
from wpinq.core.runs.people_parts import Part, TooLarge, parts
from wpinq.core.state.memory import LIMIT
from wpinq.errors import EngineError, redacted

SECOND = 2
"""The question about a version, by number, for which its index is made."""


def indexed(roots: Sequence[Node]) -> list[Node]:
    """Plans that read the index where there is one, in place of the plans that bound people anew.

    Raises:
        SourceError: A source cannot be read.
    """
    bounds = [node for node in steps(*roots) if isinstance(node, Bound) and _fits(node)]
    digests = fingerprints(*bounds)
    for data in {(id(node.data.reader), digests[node] or id(node)): node.data for node in bounds}.values():
        _version(data).questions += 1
    made: dict[Hashable, Source] = {}
    kept: dict[Node, Node] = {}
    for node in bounds:
        version = _version(node.data)
        index = version.index(node.data) if version.questions >= SECOND or node.data.indexes is not None else None
        if index is not None:
            same = digests[node] or id(node), id(version)
            if same not in made:
                made[same] = Source(replace(node.data, reader=Kept(index, node)))
            kept[node] = made[same]
    return rewrite_all(roots, lambda node: kept.get(node, node)) if kept else list(roots)


def _fits(node: Bound) -> bool:
    """Whether it bounds people's records of a source that is read whole, by ranks of its own columns."""
    data = node.data
    if (
        type(node) not in (Bound, BoundBySource)
        or data.indexes is False
        or data.live
        or data.retractions
        or kernels.LIB is None
    ):
        return False
    before = (Source, Filter, Derive) if type(node) is BoundBySource else (Source, Filter)
    return all(type(step) in before for step in steps(node.source))


class Version:
    """What is known of one version in this process.

    Attributes:
        reader: Its records; a data set that reads others, such as what was merged of a stream, is another version.
        questions: How many questions about people came.
        indexes: Its indexes, by whose records they group; None where one does not fit.
    """

    def __init__(self, reader: Reader) -> None:
        self.reader, self.questions = reader, 0
        self.indexes: dict[Hashable, PeopleIndex | None] = {}

    def index(self, data: DataSet) -> PeopleIndex | None:
        """The index of the records by the unit of a data set, made when it is first asked for."""
        unit = data.unit
        key = unit.column, unit.period, unit.zone, data.sampling_key
        known = self.indexes.get(key)
        if key not in self.indexes or (known is not None and known.damaged):
            self.indexes[key] = PeopleIndex.of(data)
        return self.indexes[key]


def _version(data: DataSet) -> Version:
    known: Version | None = data.made.get("people")
    if known is None or known.reader is not data.reader:
        known = data.made["people"] = Version(data.reader)
    return known


class PeopleIndex:
    """The records of one version, grouped by the unit that they are of, those of each in the order of their ranks.

    Attributes:
        data: The data set.
        held: Its parts, where they are held in memory; else they are read from the file for each question.
        size: Bytes that it takes, about.
    """

    def __init__(self, data: DataSet, held: list[Part] | None, file: Filed | None) -> None:
        self.data, self.held, self._file = data, held, file
        self.size = file.size if file is not None else sum(part.size for part in held or [])

    @property
    def damaged(self) -> bool:
        """Whether its file turned out not to be as it was written."""
        return self._file is not None and self._file.damaged

    def parts(self) -> Iterable[Part]:
        """Its parts, one after another."""
        if self.held is not None:
            return self.held
        return self._file.parts(self.data.reader.schema) if self._file is not None else ()

    @classmethod
    def of(cls, data: DataSet) -> PeopleIndex | None:
        """That of a data set, from its file or by reading all records; None where they would take too much memory.

        Raises:
            SourceError: It cannot be read.
        """
        file = PeopleFile.of(data)
        filed = None if file is None else file.read()
        if filed is not None:
            return cls._of_file(data, filed)
        if held := _made(data, file):
            return cls._holding(data, held, None)
        filed = None if file is None else file.read()
        return None if filed is None else cls._of_file(data, filed)

    @classmethod
    def _of_file(cls, data: DataSet, file: Filed) -> PeopleIndex:
        if not LIMIT.take(file.size):
            return cls(data, None, file)
        return cls._holding(data, list(file.parts(data.reader.schema)), file)

    @classmethod
    def _holding(cls, data: DataSet, held: list[Part], file: Filed | None) -> PeopleIndex:
        """One in memory, whose size was taken, and is given back when it goes."""
        index = cls(data, held, file)
        weakref.finalize(index, LIMIT.give, index.size)
        return index


def _made(data: DataSet, file: PeopleFile | None) -> list[Part]:
    """Make an index and write its file; its parts, whose memory was taken, or none where they do not fit.

    Raises:
        SourceError: The records cannot be read.
    """
    held: list[Part] = []
    whole, ended = True, False
    try:
        with suppress(OSError, EngineError, TooLarge), ExitStack() as stack:  # a full disk ends no question
            writing = None if file is None else stack.enter_context(file.writing())
            for part in parts(data, disk=writing is not None):
                whole = whole and LIMIT.take(part.size)
                if whole:
                    held.append(part)
                elif writing is None:
                    break
                if writing is not None:
                    writing.add(part)
            ended = True
    finally:
        if not (whole and ended):
            for part in held:
                LIMIT.give(part.size)
    return held if whole and ended else []


class Kept(HeldReader):
    """What a bound keeps of people's records after its filters, from the index."""

    __slots__ = ("_before", "_bound", "_index", "name", "schema")

    def __init__(self, index: PeopleIndex, node: Bound) -> None:
        self._bound, self._index = node, index
        self.schema, self.name = node.schema, node.data.reader.name
        self._before = [step for step in steps(node.source) if isinstance(step, Filter | Derive)]

    def bounds(self, columns: frozenset[str]) -> Fraction | None:
        """What records that agree in these columns weigh at the most, as after the bound: joins rest on it."""
        return self._bound.bounds(columns, None)

    @property
    def total_bytes(self) -> int:  # type: ignore[override]  # it can tell
        """As many as the index takes, about."""
        return self._index.size

    def batches(
        self, columns: Sequence[str], *, share: tuple[int, int] = (0, 1), progress: Callable[[int], None] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Frames of these columns: of some people of each part that is held, or of each so many parts of a file."""
        held = self._index.held is not None
        for number, part in enumerate(self._index.parts()):
            if held or number % share[1] == share[0]:
                some = part.of_some(share) if held else part
                kept, stays = redacted("bounding people", partial(self._sample, some))
                yield from kept.frames(columns, stays)

    def _sample(self, part: Part) -> tuple[Part, Stays]:
        """A part with the columns that are computed, and which of its rows stay."""
        node = self._bound
        return part.sample(self._before, int(node.most), node.unit.per, node.data.sampling_key)
