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
        "digits of the noise have another probability", "core/noise/digits.py",
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
    "no refusal": Plant(
        "a charge that does not fit is made", "core/ledger/accountant.py",
        "        if not self.promise.holds(after):", "        if False:", "charges of a ledger"),
}  # fmt: skip
