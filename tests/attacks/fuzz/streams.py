"""Continual keys on neighbouring streams: what moves is what is charged for, and what shows a key costs delta at most.

A stream is sent with and without one unit, under one secret. True weights and thresholds are compared, before noise:
nothing here is statistical.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
from attacks.fuzz.fuzzer import Fuzzer
from attacks.fuzz.plant import Plant
from attacks.fuzz.run import SECRET

import wpinq
from wpinq.core.measurements import continual_selection
from wpinq.core.measurements.continual_selection import PassingEpochs, rows_of
from wpinq.core.noise.tails import share_at
from wpinq.core.pricing.sensitivity import unit_sensitivities
from wpinq.errors import WpinqError

PLANS = [
    "views.map('page')", "views.map('user')", "views", "views.filter(lambda page: page != 'b').map('page')",
    "views.flat_map(lambda user, page: [page, user], columns=['v'])", "views.map('page').concat(views.map('user'))",
    "views.map('page').concat(views.map('page'))", "views.map(lambda page: len(page))",
    "views.flat_map(lambda page: [page] * 3, columns=['v'])", "views.map('page').concat(views.map('page')).map('page')",
]  # fmt: skip
Weights = dict[tuple[int, int], int]


@dataclass(frozen=True)
class Stream:
    """Records by epoch, and what is asked of them."""

    epochs: tuple[tuple[tuple[str, str], ...], ...]
    plan: str
    unit: str
    epsilon: str
    delta: str
    least: int
    gone: tuple[int, int]
    person: str

    @property
    def without(self) -> Stream:
        """The neighbour, which lacks a record or a person."""
        if self.unit:
            kept = [tuple(row for row in rows if row[0] != self.person) for rows in self.epochs]
        else:
            kept = [tuple(row for place, row in enumerate(rows) if (number, place) != self.gone)
                    for number, rows in enumerate(self.epochs)]  # fmt: skip
        return replace(self, epochs=tuple(kept))


def grow(seed: int) -> Stream:
    """A stream of a seed."""
    rng = random.Random(f"streams {seed}")
    users, pages = ["ann", "bob", "cid", "dee"], ["a", "b", "c", "aa", "ann"]
    epochs = tuple(
        tuple((rng.choice(users), rng.choice(pages)) for _ in range(rng.choice([0, 1, 1, 2, 4, 9])))
        for _ in range(rng.choice([1, 2, 3, 5, 9, 14]))
    )
    unit = rng.choice(["", "", "at_most=1", "at_most=2", "at_most=3", "at_most=5"])
    sent = [(number, place) for number, rows in enumerate(epochs) for place in range(len(rows))] or [(0, 0)]
    return Stream(
        epochs, rng.choice(PLANS), unit, rng.choice(["1/2", "1", "3", "20"]), rng.choice(["1/1000", "1/50", "1/5"]),
        rng.choice([1, 1, 2, 4]), rng.choice(sent), rng.choice(users),
    )  # fmt: skip


@dataclass
class Trace:
    """What happened: changes and totals by epoch, thresholds, published keys, and what is spent."""

    said: str = ""
    changes: list[Weights] = field(default_factory=list)
    totals: list[Weights] = field(default_factory=list)
    taus: list[int] = field(default_factory=list)
    shown: list[set[Any]] = field(default_factory=list)
    spent: list[Any] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    keys: Any = None


def held(histogram: Any) -> Weights:
    """Weights by identity."""
    return {tuple(one): weight for ids, weights in rows_of(histogram)
            for one, weight in zip(ids.tolist(), weights.tolist(), strict=True) if weight}  # fmt: skip


def run(stream: Stream) -> Trace:
    """Send a stream."""
    trace = Trace()
    unit = f"wpinq.users('user', {stream.unit})" if stream.unit else "None"
    views = wpinq.live({"user": "text", "page": "text"}, budget=10**9, delta="1/2", unit=eval(unit), secret=SECRET)
    once = PassingEpochs.receive

    def receive(self: PassingEpochs, epoch: int, change: Any) -> None:
        trace.changes.append(held(change))
        once(self, epoch, change)

    try:
        with patch.object(PassingEpochs, "receive", receive):
            trace.keys = keys = eval(stream.plan, {"views": views}).select(
                stream.epsilon, delta=stream.delta, continual=True, at_least=stream.least
            )
            for number, rows in enumerate(stream.epochs, 1):
                views.send(list(rows))
                views.advance()
                trace.totals.append(held(keys.times._total))
                trace.taus.append(keys.times.threshold(number))
                trace.shown.append({tuple(one) for one in keys.times.published(number).tolist()})
                trace.spent.append(views._data.ledger.spent())
                trace.wrong += checked(keys, trace, number)
            trace.wrong += [
                f"D the keys of epoch {n} changed"
                for n in range(1, len(stream.epochs) + 1)
                if {tuple(one) for one in keys.times.published(n).tolist()} != trace.shown[n - 1]
            ]
    except WpinqError as error:
        trace.said = f"{type(error).__name__}: {error}"
    finally:
        views.close()
    return trace


def checked(keys: Any, trace: Trace, epoch: int) -> list[str]:
    """Whether exactly those keys are shown that were before, or are heavy enough with and without their noise."""
    wanted = set(trace.shown[-2]) if epoch > 1 else set()
    if share_at(epoch):
        heavy = [(one, w) for one, w in trace.totals[-1].items() if w >= keys.least * keys.node.resolution]
        if heavy:
            noise = keys.times.noise.draw(epoch, np.array([one for one, _ in heavy], np.uint64))
            grid = keys._mechanism.grid
            wanted |= {one for (one, w), z in zip(heavy, noise.tolist(), strict=True) if w * grid + z >= trace.taus[-1]}
    return [] if wanted == trace.shown[-1] else [f"C at epoch {epoch} other keys are shown than pass"]


def judge(stream: Stream) -> list[str]:
    """What is wrong; nothing where all is well."""
    one, other = run(stream), run(stream.without)
    found = [*one.wrong, *other.wrong]
    if (one.said, one.spent, one.taus) != (other.said, other.spent, other.taus):
        found.append(f"A what is said, spent or a threshold depends on a unit: {one.said!r}, {other.said!r}")
    if one.said or found or not one.changes:
        return found
    keys = one.keys
    if any(spent != one.spent[0] for spent in one.spent) or one.spent[0][1] != Fraction(stream.delta):
        found.append("E an epoch is charged, or not delta")
    (unit,) = unit_sensitivities(keys.node)
    moved: dict[Any, int] = {}
    for mine, others in zip(one.changes, other.changes, strict=True):
        for key in {*mine, *others}:
            moved[key] = moved.get(key, 0) + abs(mine.get(key, 0) - others.get(key, 0))
    if sum(moved.values()) > unit.l1 or max(moved.values(), default=0) > unit.linf:
        found.append(
            f"B it moves by {sum(moved.values())}, a bin by {max(moved.values())}, of {unit.l1} and {unit.linf}"
        )
    if unit.l1 > Fraction(stream.epsilon) * keys._mechanism.scale:
        found.append("B the noise is too narrow for what moves")
    if (lost := exposed(keys, one, other)) > float(Fraction(stream.delta)) * (1 + 1e-6):
        found.append(f"F a key of the unit alone is shown with probability {lost:.3g}, for {stream.delta}")
    return found


def exposed(keys: Any, one: Trace, other: Trace) -> float:
    """At most with which probability a key passes at a look that only one of the streams has, from the exact law."""
    least, grid, total = keys.least * keys.node.resolution, keys._mechanism.grid, 0.0
    for place, (mine, others) in enumerate(zip(one.totals, other.totals, strict=True)):
        if not share_at(place + 1):
            continue
        alone = [w for a, b in ((mine, others), (others, mine)) for k, w in a.items() if w >= least > b.get(k, 0)]
        if alone:
            probability, value = law(tuple(keys.times.noise.scales(place + 1)))
            total += sum(float(probability[value >= one.taus[place] - w * grid].sum()) for w in alone)
    return total


def law(scales: tuple[float, ...]) -> tuple[Any, Any]:
    """The probabilities of a sum of discrete Laplace noises, and its values."""
    size, found = 1 << 14, 1.0
    angle = 2 * np.pi * np.arange(size) / size
    for scale in scales:
        r = np.exp(-1 / scale)
        found = found * (1 - r) ** 2 / (1 - 2 * r * np.cos(angle) + r * r)
    return np.maximum(np.fft.fftshift(np.fft.ifft(found).real), 0), np.arange(size) - size // 2


# ---- bugs that are put back


def only_changed() -> list[Any]:
    """A key is looked at only in an epoch that changes it."""
    once = PassingEpochs.receive

    def receive(self: PassingEpochs, epoch: int, change: Any) -> None:
        whole = self._total
        self._total = change
        try:
            once(self, epoch, change)
        finally:
            self._total = whole

    return [patch.object(PassingEpochs, "receive", receive)]


def threshold(**wrong: Any) -> list[Any]:
    """A threshold for less than a unit can do."""
    once = continual_selection.lasting_threshold

    def found(scales: Any, grid: int, l1: int, linf: int, **given: Any) -> int:
        return once(scales, grid, wrong.get("l1", l1), wrong.get("linf", linf), **given | wrong.get("given", {}))

    return [patch.object(continual_selection, "lasting_threshold", found)]


def retracted() -> list[Any]:
    """A person's bound keeps a sample, which lets go of a record when another comes."""
    return [
        patch.object(continual_selection, "first", lambda one: one),
        patch.object(continual_selection, "refuse_unless_linear", lambda _: None),
    ]


def every_look() -> list[Any]:
    """Each look costs all of delta."""
    return [patch.object(continual_selection, "share_at", lambda epoch: Fraction(1 if share_at(epoch) else 0))]


PLANTS = {
    "retracted": Plant("a bound lets go of a record when another comes", retracted, 1),
    "only_changed": Plant("a key is looked at only in an epoch that changes it", only_changed, 27),
    "one_weight": Plant("a threshold for one record of a person", lambda: threshold(l1=1, linf=1), 16),
    "least": Plant("a threshold forgets from which weight on", lambda: threshold(given={"least": 1}), 45),
    "every_look": Plant("each look costs delta", every_look, 2),
}
FUZZER = Fuzzer("streams", grow, judge, PLANTS)
