"""Choosing: which of some keys weigh most, and no more than that: PINQ's exponential mechanism over names.

With S the L1 sensitivity and B the largest change of one bin, one unit moves the differences between bins by F =
min(S, 2 B) at the most: one bin may rise by B while another falls by as much, and all together move by S. Where a unit
more lowers no bin (`core/plan/person_bound.py`: rising), a difference moves by what one bin rises at most, and F = B:
people by page after `distinct`, say. Then the t of the proof below moves by B at the most, either way. Two ways lead
to k keys, and public facts alone (k, S, B) decide which is taken: the one whose noise has the smaller variance.

- *Peeling*: choose the key of the largest weight by permute-and-flip at epsilon / k, leave it out, and so on. A choice
  at rate r costs r F, and choices that are made one after another add up. Proof: permute-and-flip is the largest of the
  weights with independent exponential noise of rate r. Weights that all move alike change no choice, so let each rise
  by something from 0 to F. Given the noise of all others, a key is chosen where its own noise is above some t, and t
  moves by F at the most, which changes the probability by a factor of exp(r F) at the most.
- *One shot*: measure all keys at once at epsilon, and tell the k that are largest, which is post-processing.

The exponential noise of a choice has scale k F / epsilon, that of a measurement S / epsilon and twice the variance, so
peeling is taken where k F < 1.42 S: for one key, and for few of people who have many records and one of each key.

Of what is measured in parts (a partition's) only the costliest part is charged: a unit that moves part p by the share
f_p of S may lose f_p epsilon there (`core/ledger/sums/cost.py`). But min(f_p S, 2 B) is F also for small shares, so in
each of many parts a choice at rate epsilon / (k F) may lose all of epsilon. There F is S: r f_p S k is f_p epsilon.

Source: McSherry and Talwar, "Mechanism design via differential privacy", FOCS 2007; McKenna and Sheldon,
"Permute-and-flip", NeurIPS 2020; Ding, Kifer, Saghaian, Steinke, Wang, Xiao and Zhang, "The permute-and-flip mechanism
is identical to report-noisy-max with exponential noise", 2021; Durfee and Rogers, NeurIPS 2019, for F and for peeling.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from wpinq.arguments import NAME, NAMES, NOTHING, WHOLE, described, takes
from wpinq.core.functions.isolate import refuse_inside
from wpinq.core.measurements.answer import About, Answer, Released
from wpinq.core.measurements.published import readable
from wpinq.core.measurements.query import ChargedQuery
from wpinq.core.measurements.select import Selection
from wpinq.core.noise.exponential import PermuteAndFlip
from wpinq.core.operators.map import choose
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.plan.phrase import phrase
from wpinq.core.pricing.quote import Quote, price
from wpinq.core.pricing.sensitivity import l1_sensitivity, unit_sensitivities
from wpinq.core.records.bins import bin_frame
from wpinq.core.records.identity import identities
from wpinq.core.records.kinds import codes, joined_codes, read
from wpinq.core.records.schema import Kind, Schema
from wpinq.core.runs.epochs import answered_from
from wpinq.errors import PlanError, redacted
from wpinq.exact import Amount, decimal, positive

if TYPE_CHECKING:
    from wpinq.core.measurements.measurement import Measurement
    from wpinq.core.plan.node import Builder


@takes(columns=NAMES, k=WHOLE, name=NAME | NOTHING, analyst=NAME | NOTHING)
def top(
    self: Builder[Any], columns: str | Sequence[str], k: int, epsilon: Amount, keys: Any, *,
    counts: Amount | None = None, name: str | None = None, analyst: str | None = None,
) -> Answer:  # fmt: skip
    """Charge for the names of the k keys that weigh most, of those given, the heaviest first.

    It tells names and no weights. A key whose weight is within about (k / epsilon) log(number of keys) of the k-th may
    stand in its place. Where the keys are measured for that (see above), `map(columns).measure(epsilon)` is the same
    question, and so free.

    Args:
        columns: A column, or several that together are a key.
        k: How many keys.
        epsilon: What it costs the privacy unit, exact.
        keys: The keys to choose from, present or not, as bins of these columns; or what `select` found. Other keys are
            another question, and charged.
        counts: Epsilon for the weights of the keys that are chosen, with intervals; charged together with the names.
        name: Tells repetitions apart.
        analyst: Who is charged, where the curator keeps caps for each analyst.

    Raises:
        PlanError: There is no such column, there are fewer keys than k, or windows, which would have an answer each.
        BinError: A key is no value of the columns.
        ExactnessError, BudgetError, LedgerError: See `measure`.

    >>> import wpinq
    >>> eyes = wpinq.protect([("brown",)] * 60 + [("blue",)] * 20, budget=20, columns=["color"])
    >>> eyes.mode("color", epsilon=5, keys=["blue", "brown", "green"]).value
    'brown'
    >>> eyes.top("color", 2, epsilon=5, keys=["blue", "brown", "green"], counts=5).rows[0][0]
    'brown'
    """
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    projected = self._then(choose(self._node, names, "top(columns=...)"))
    selection = TopKeys.of(projected._node.schema, k, keys.bins if isinstance(keys, Selection) else keys)
    quotes = [quoted(projected, selection, positive(epsilon, "top(epsilon=...)"), name, analyst)
              .worded(phrase(self._node, selection.title))]  # fmt: skip
    if counts is not None:
        named = f"{name}, counts" if name else f"counts of {selection.title}"
        quotes.append(projected.quote(positive(counts, "top(counts=...)"), named, analyst=analyst))
    first, *measured = self._commit(quotes)
    chosen = Chosen(first, selection, measured[0] if measured else None)
    about = About(selection.title, (first, *measured), intervals=bool(measured))
    return Answer(about, chosen.released, many=k > 1 or len(selection.schema) > 1 or bool(measured))


@takes(columns=NAMES)
def mode(
    self: Builder[Any], columns: str | Sequence[str], epsilon: Amount, keys: Any, *,
    counts: Amount | None = None, name: str | None = None, analyst: str | None = None,
) -> Answer:  # fmt: skip
    """Charge for the key that weighs most: `top` of one, with its arguments and errors.

    Of records it is the most common value; of a collection whose weights are scores, their argmax.
    """
    return top(self, columns, 1, epsilon, keys, counts=counts, name=name, analyst=analyst)


class TopKeys(NamedTuple):
    """What is asked.

    Attributes:
        schema: The columns of a key.
        keys: The keys, each once.
        k: How many of them are told.
        digest: Of the keys, in whatever order.
    """

    schema: Schema
    keys: pl.DataFrame
    k: int
    digest: bytes

    @classmethod
    def of(cls, ranged: Schema, k: int, keys: Any) -> TopKeys:
        """Read the keys.

        Raises:
            PlanError: There are fewer than k.
            BinError: A key is no value of the columns.
        """
        schema = ranged.expanded()
        frame = bin_frame(keys, schema, "top(keys=...)")
        written = joined_codes([codes(frame[column.name], column.kind) for column in schema])
        frame = frame.filter(written.is_first_distinct())
        if not 1 <= k <= frame.height:
            raise PlanError(f"top(k=...): takes 1 to {frame.height}, as many as there are keys; got {described(k)}.")
        content = hashlib.blake2b(digest_size=32)
        for code in written.unique().sort():
            content.update(len(code).to_bytes(8, "little") + code)
        return cls(schema, frame, k, content.digest())

    @property
    def title(self) -> str:
        """What was asked, for people."""
        return f"top({', '.join(self.schema.names)}, {self.k})"

    def bins(self, indices: Sequence[int]) -> list[Any]:
        """Some of the keys, as bins."""
        columns = [
            [
                read(value, column.kind) if column.kind is Kind.ANY else value
                for value in self.keys[column.name][indices]
            ]
            for column in self.schema
        ]
        return list(zip(*columns, strict=True)) if len(columns) > 1 else columns[0]


def quoted(projected: Any, selection: TopKeys, epsilon: Fraction, name: str | None, analyst: str | None) -> Quote[Any]:
    """The price of the heaviest keys of a collection."""
    survey, epochs = answered_from(fit_noise(projected._node), "top")
    twice = 1 if all(change.rises for change in survey.changes.values()) else 2
    part = max(min(Fraction(1), Fraction(twice * unit.linf, unit.l1)) for unit in unit_sensitivities(survey))
    part = Fraction(1) if any(parts for _, parts in survey.paths) else part
    if (selection.k * part) ** 2 > 2:
        quote: Quote[Any] = projected.quote(epsilon, name, analyst=analyst)
        return quote
    rate = epsilon / (selection.k * part * l1_sensitivity(survey))
    return price(
        survey, epsilon, call="top", kind=Peeled, mechanism=(PermuteAndFlip(rate), selection),
        fields=("top", selection.k, selection.digest, rate), name=name, analyst=analyst, epochs=epochs,
    )  # fmt: skip


class Peeled(ChargedQuery):
    """Charged names of the heaviest keys, chosen one after another when they are first asked for."""

    purpose = "top"

    def __init__(self, quote: Quote[Any]) -> None:
        super().__init__(quote)
        mechanism: tuple[PermuteAndFlip, TopKeys] = quote.mechanism
        self._chooser, self._selection = mechanism
        self._chosen: list[int] | None = None

    def indices(self) -> list[int]:
        """The places of the chosen keys among those asked for, the heaviest first."""
        refuse_inside("top")
        if self._chosen is None:
            self._chosen = redacted("top", self._choose)
        return self._chosen

    def _choose(self) -> list[int]:
        histogram, words = self._settled()
        frame = self._selection.keys
        ids = identities(frame, self.node.schema.expanded(), self.key_owner.identity_key)
        return peel(self._chooser, words, ids, histogram.lookup(frame, ids), self._selection.k)

    def __repr__(self) -> str:
        return f"<{self._selection.title}, epsilon {decimal(self.epsilon)}>"


def peel(chooser: PermuteAndFlip, words: Any, ids: np.ndarray, weights: np.ndarray, k: int) -> list[int]:
    """Choose the heaviest, leave it out, and so on; each choice has words of its own."""
    left, chosen = np.arange(len(weights)), []
    for turn in range(k):
        losses = weights[left].max() - weights[left]
        index = chooser.choose(words, ids[left], losses, turn)
        chosen.append(int(left[index]))
        left = np.delete(left, index)
    return chosen


class Chosen(NamedTuple):
    """What is told of the chosen keys."""

    charged: Peeled | Measurement
    selection: TopKeys
    counts: Measurement | None

    def released(self, level: Fraction, simultaneous: bool) -> Released:
        """The keys, and their weights where these were paid for."""
        indices = self._indices()
        rows = self.selection.keys[indices]
        table = rows.with_columns(readable(rows[column.name], column.kind) for column in self.selection.schema)
        if self.counts is None:
            return table, {}
        label = self.selection.schema.fresh("count" if self.counts.node.held.whole else "weighted_sum")
        noisy = pl.Series(label, self.counts.observe_many(self.selection.bins(indices)))
        half = self.counts.interval(level, bins=rows.height if simultaneous else 1)
        return table.with_columns(noisy), {label: (noisy - half, noisy + half)}

    def _indices(self) -> list[int]:
        if isinstance(self.charged, Peeled):
            return self.charged.indices()
        noisy = self.charged.observe_many(self.selection.bins(range(self.selection.keys.height)))
        return [int(index) for index in np.argsort(-noisy, kind="stable")[: self.selection.k]]
