"""Faults that are planted in a copy of the package, to see that each check finds what it is there to find.

A plant is text of the code as it stands and the text that takes its place. It is never put into the package that runs.
`tests/mutation/plants.py` has more of them, each found by a test of the project.
"""

# ruff: noqa: E501  texts of the code as they stand

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Plant(NamedTuple):
    """A fault.

    Attributes:
        what: In a few words.
        file: Where it is, from the folder of the package.
        old: The text that is replaced, which is there once.
        new: What it is replaced by.
        check: The check that must find it.
    """

    what: str
    file: str
    old: str
    new: str
    check: str


def planted(package: Path, plant: Plant) -> str:
    """The text of the plant's file with the fault in it.

    Raises:
        ValueError: The text that it replaces is not there once: where the code moves, the plant moves with it.
    """
    text = (package / plant.file).read_text("utf-8")
    if text.count(plant.old) != 1:
        raise ValueError(f"{plant.what}: {plant.old!r} stands {text.count(plant.old)} times in {plant.file}")
    return text.replace(plant.old, plant.new)


HALF = ("the scale of the noise is half of what epsilon asks for", "core/plan/stability.py",
        "        return max(self.sensitivities.values()) / epsilon", "        return max(self.sensitivities.values()) / epsilon / 2")  # fmt: skip
PLANTS = {
    "half the scale": Plant(*HALF, "loss of neighbours"),
    "half the scale, to the auditor of others": Plant(*HALF, "loss, by JAX Privacy's auditor"),
    "the law of a digit": Plant(
        "digits of the noise have another probability", "core/noise/words.py",
        "tuple(Threshold((1 << j) / scale, odds=True) for j in range(digits))",
        "tuple(Threshold((1 << j) / scale, odds=j > 0) for j in range(digits))", "law of geometric noise"),
    "one key for two words": Plant(
        "two digits of the noise are one", "core/noise/words.py",
        'block = number.to_bytes(16, "big")', 'block = (number // 2).to_bytes(16, "big")', "law of geometric noise"),
    "the scale of a grid": Plant(
        "Laplace noise on a grid has another scale", "core/noise/geometric.py",
        "        return DiscreteLaplace(self.scale * self.grid)", "        return DiscreteLaplace(self.scale * self.grid * 9 / 10)",
        "law of laplace noise"),
    "the variance of a block": Plant(
        "blocks of Gaussian noise have another variance", "core/noise/blocks.py",
        "        return Fraction(4**self.shift) / (2 * self.square)", "        return Fraction(4**self.shift) / (2 * self.square) * Fraction(11, 10)",
        "law of gaussian noise"),
    "one noise for two measurements": Plant(
        "noise is bound to the histogram alone", "core/measurements/query.py",
        "secret.derive(self.purpose, self.quote.key, self._bound)", "secret.derive(self.purpose, self.digest(histogram).to_bytes(32, 'little'))",
        "each noise is drawn once"),
    "noise drawn twice": Plant(
        "the same question is a new one each time", "core/pricing/quote.py",
        "plan = survey.fingerprint or os.urandom(32)", "plan = os.urandom(32)", "each noise is drawn once"),
    "no threshold": Plant(
        "bins are published that no threshold holds back", "core/pricing/threshold.py",
        "    return max(\n        least_threshold(", "    return -(10**6) or max(\n        least_threshold(", "delta of a threshold"),
    "a record beyond the bound": Plant(
        "a person keeps one record more than the bound", "core/operators/contribution/sample.py",
        "    arguments = schema, unit, keep, key, ranked\n",
        "    arguments = schema, replace(unit, at_most=(unit.at_most or 0) + 1), keep, key, ranked\n", "loss of neighbours"),
    "values beyond their bounds": Plant(
        "numbers beyond their bounds are summed as they are", "aggregates/scale.py",
        "        return steps.clip(self.low, self.high).cast(pl.Int64)", "        return steps.cast(pl.Int64)", "loss of neighbours"),
    "a stability too small": Plant(
        "flat_map of two whole outputs says that a record moves it by one", "core/operators/flat_map.py",
        "        return (Fraction(self.at_most),)", "        return (Fraction(1),)", "stability, as defined"),
    "two inputs at the price of the larger": Plant(
        "what a unit moves of two inputs does not add up", "core/plan/person_bound.py",
        "    masses = _together(inputs, add)", "    masses = _together(inputs, max)", "stability, as computed"),
    "columns that are not what is defined": Plant(
        "distinct does not bound weights where columns compute it", "core/operators/distinct.py",
        "        return (weights[0].cast(self.held.column) * finer).clip(0, int(self.at_most * self.resolution))",
        "        return weights[0].cast(self.held.column) * finer", "stability, as computed"),
    "a threshold for narrower noise": Plant(
        "thresholds of Gaussian noise are those of another variance", "core/noise/threshold.py",
        "        return gaussian_bounds, noise.square", "        return gaussian_bounds, noise.square * 3 / 4", "delta of a threshold"),
    "coins of the wrong law": Plant(
        "a key that is behind is taken with another chance", "core/noise/exponential.py",
        "return Threshold(self.rate * loss, odds=False)", "return Threshold(self.rate * loss, odds=True)", "law of choices"),
    "a choice at twice its rate": Plant(
        "a choice costs twice what is charged", "aggregates/heavy_hitters.py",
        "    rate = epsilon / (selection.k", "    rate = 2 * epsilon / (selection.k", "law of choices"),
    "every choice at the whole price": Plant(
        "each of several choices is made as if it were the only one", "aggregates/heavy_hitters.py",
        "    rate = epsilon / (selection.k * part", "    rate = epsilon / (part", "law of choices"),
    "the turn of a selection": Plant(
        "probabilities of a selection turn one weight too late", "core/noise/selection.py",
        "        if n <= turn:", "        if n <= turn + 1:", "law of selections"),
    "bins of weight 1": Plant(
        "bins of one record are named more often than delta allows", "core/noise/selection.py",
        "            return (self.delta.numerator << places)", "            return (2 * self.delta.numerator << places)", "law of selections"),
    "twice the delta of a selection": Plant(
        "a selection spends another delta than is charged", "core/measurements/select.py",
        "    best = _mechanism(survey, cost, lost)", "    best = _mechanism(survey, cost, 2 * lost)", "law of selections"),
    "many names at the threshold of one": Plant(
        "the threshold of weighted noise forgets that a person has many names", "core/noise/weighted_rounds.py",
        "half_width(square, 1 - 2 * delta / last)", "half_width(square, 1 - 2 * delta)", "delta and loss of weighted selections"),
    "weighted noise of half the width": Plant(
        "noise of weighted selections is half as wide", "core/noise/weighted_rounds.py",
        "    squares = [UNIT**2 / (shift**2 * share) + wider", "    squares = [UNIT**2 / (4 * shift**2 * share) + wider", "delta and loss of weighted selections"),
    "each level at the whole price": Plant(
        "the levels of a counting tree do not share epsilon", "core/measurements/epoch_noise.py",
        "            scale = self._law.scale / segment(number).shares[level]", "            scale = self._law.scale", "noise of counting trees"),
    "one noise for a level": Plant(
        "all nodes of a level of a counting tree have the same noise", "core/measurements/epoch_noise.py",
        "        position = np.repeat(index.astype(np.uint64), len(ids))", "        position = np.repeat(0 * index.astype(np.uint64), len(ids))", "noise of counting trees"),
    "shares above one": Plant(
        "the levels of a counting tree cost more than epsilon", "core/noise/counting_tree.py",
        "tuple(Fraction(root, total) for root in roots)", "tuple(Fraction(root, total - 1) for root in roots)", "noise of counting trees"),
    "a node too few": Plant(
        "counts of an epoch leave a node out", "core/noise/counting_tree.py",
        "        return [*result, self.whole] if many else result", "        return [*result, self.whole] if many > 1 else result", "noise of counting trees"),
    "no refusal": Plant(
        "a charge that does not fit is made", "core/ledger/sums/accountant.py",
        "        if not self.promise.holds(after):", "        if False:", "charges of a ledger"),
}  # fmt: skip
