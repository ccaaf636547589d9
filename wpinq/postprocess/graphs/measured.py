"""What was released of a graph, as plain numbers, and as the chain takes it.

**Joint degrees** are guessed from noisy answers: what chance makes of the degrees, times a smooth factor. Cell (i, j)
is what the simple graphs with these degrees have there on average, times exp(f), where f is normal around zero and
alike for buckets near each other: a Gaussian process. Its spread and reach are not known, so guesses under several are
averaged, each as far as the answers are likely under it. Graphs that are not random are what people ask about, so the
least spread is not small: where noise leaves it open, chance alone would always win. The sums of rows follow from the
degrees, so they are known. A cell that noise swamps then follows what the cells beside it have: where large degrees
seek each other, the few edges between the largest are not lost.

Source: Park and Newman, Physical Review E 70, 066117 (2004), for chance; Rasmussen and Williams, Gaussian Processes for
Machine Learning, MIT Press 2006, sec. 3.4 (Laplace's method), 5.2 (averages).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from wpinq.errors import PlanError
from wpinq.postprocess.degrees.fit import Fit
from wpinq.postprocess.graphs.counts import NONE, Fine, Floats, Ints, buckets_of, shares
from wpinq.postprocess.graphs.target import Target

SHARPNESS = 200.0
"""What a unit of weight is worth, of the answer with the least noise. The likelihood itself would be worth 1/scale, and
then nearly all graphs have few triangles, whatever was answered, for there are so many more of them."""
SPREAD = 1.0
"""How far answers lie from what the degrees alone let one expect, in shares of that; see `shrunken` and `believed`."""
BEYOND = 3
"""So many more slices than buckets of right nodes there are: two share a quarter of a degree at the most."""
LEAST_SLACK, SHARE_ROUNDS = 0.01, 30


@dataclass(frozen=True, eq=False)
class Noisy:
    """Released answers of one query, and the scale of the Laplace noise on each."""

    values: Floats
    scale: float

    def content(self) -> dict[str, Any]:
        """What a JSON file holds of them."""
        return {"scale": self.scale, "values": self.values.tolist()}


@dataclass(frozen=True, eq=False)
class NoisyByDegree(Noisy):
    """Released answers by degree, for all pairs or ascending triples of `degrees`, which ascend (see `Fine`)."""

    degrees: Ints

    def content(self) -> dict[str, Any]:
        """What a JSON file holds of them."""
        return {"degrees": self.degrees.tolist(), **super().content()}


@dataclass(frozen=True, eq=False, repr=False)
class Released:
    """What was released of a graph, as plain numbers: all that a synthetic graph follows from."""

    KIND: ClassVar[str]
    QUERIES: ClassVar[tuple[str, ...]]

    def noisy(self) -> dict[str, Noisy]:
        """What was asked beside the degrees, by name."""
        return {name: getattr(self, name) for name in self.QUERIES if getattr(self, name) is not None}

    def __repr__(self) -> str:
        return f"<released answers of {self.KIND}: degrees{''.join(f', {name}' for name in self.noisy())}>"


@dataclass(frozen=True, eq=False, repr=False)
class Measurements(Released):
    """What was released of a graph: plain numbers, all that a synthetic graph follows from.

    Attributes:
        degrees: The fitted degree distribution.
        joint: Of `graphs.joint_buckets`: entry (i - 1, j - 1) is of buckets i <= j; None where it was not asked.
        triangles: Of `graphs.triangle_buckets`: entry i - 1 is of bucket i; or None.
        intersect: Of `graphs.triangles_by_intersect`, one number; or None.
        joint_degrees: Of `graphs.joint_degrees`: entry (i, j) is of the i-th and j-th degree asked; or None.
        triangles_by_degree: Of `graphs.triangles_by_degree`: one row, triples in the order of `Fine`; or None.
        about: What describes them: data set, unit, cost, and what is not in them; None for bare numbers.
    """

    KIND = "a graph"
    QUERIES = ("joint", "triangles", "intersect", "joint_degrees", "triangles_by_degree")
    degrees: Fit
    joint: Noisy | None = None
    triangles: Noisy | None = None
    intersect: Noisy | None = None
    joint_degrees: NoisyByDegree | None = None
    triangles_by_degree: NoisyByDegree | None = None
    about: Mapping[str, Any] | None = None

    @property
    def fine(self) -> Fine:
        """The cells of the answers by degree."""
        by_degree = (self.joint_degrees, self.triangles_by_degree)
        return Fine(*(NONE if answers is None else answers.degrees for answers in by_degree))

    def target(self, degrees: Ints, sharpness: float = SHARPNESS) -> Target:
        """The answers as the chain takes them: those of the buckets that its nodes are in, and how sure each is."""
        buckets, fine = buckets_of(degrees), self.fine
        guesses = self._guesses(degrees)
        by_degree = (self.joint_degrees, self.triangles_by_degree)
        noisy = [answers for answers, _, _ in guesses.values()] or [
            answers for answers in by_degree if answers is not None
        ]
        least = min((answers.scale for answers in noisy), default=1.0)
        shapes = {"joint": (buckets, buckets), "triangles": (buckets,), "intersect": (1,)}
        rows = [aimed(shape, guesses.get(name), sharpness * least) for name, shape in shapes.items()]
        rows[0] = [np.triu(cells.reshape(buckets, buckets)).ravel() for cells in rows[0]]
        for fit, expected, unit in zip(by_degree, fine.expected(degrees), fine.units(), strict=True):
            if fit is not None:  # an edge or a triangle is worth as much as an edge of the buckets, which weighs 1/2
                worth = (sharpness * least / fit.scale * trusted(fit, expected.reshape(fit.values.shape)) / 2).ravel()
                rows.append([fit.values.ravel(), worth / unit.ravel(), np.full(worth.size, fit.scale)])
        wanted, weight, slack = map(np.concatenate, zip(*rows, strict=True))
        return Target(wanted, weight, slack, buckets**2)

    def _guesses(self, degrees: Ints) -> dict[str, tuple[Noisy, Floats, Floats]]:
        """Of each query asked the answers, the best guesses that follow from them, and how sure each of these is."""
        guesses = {}
        if self.joint is not None:
            guess, unsure = smoothed(self.joint.values, self.joint.scale, degrees)
            guesses["joint"] = (self.joint, guess, np.clip(unsure, LEAST_SLACK * self.joint.scale, self.joint.scale))
        if self.triangles is not None:
            pairs = np.maximum(degrees - 1, 0) @ shares(degrees, len(self.triangles.values)) / 2
            share = common_share(self.triangles, pairs, self.intersect)
            guesses["triangles"] = (self.triangles, *shrunken(self.triangles, share * pairs, SPREAD))
        if self.intersect is not None:
            guesses["intersect"] = (self.intersect, self.intersect.values, np.full(1, self.intersect.scale))
        return guesses


@dataclass(frozen=True, eq=False, repr=False)
class PairMeasurements(Released):
    """What was released of a bipartite graph: plain numbers, all that a synthetic one follows from.

    Attributes:
        left: The fitted degree distribution of the left nodes.
        right: That of the right ones.
        joint: Of `graphs.pair_buckets`: entry (i - 1, j - 1) is of buckets i and j; None where it was not asked.
        butterflies: Of `graphs.butterfly_buckets`: entry (i - 1, k - 1) is of bucket i and slice k; or None.
        about: What describes them: data set, unit, cost, and what is not in them; None for bare numbers.
    """

    KIND = "a bipartite graph"
    QUERIES = ("joint", "butterflies")
    left: Fit
    right: Fit
    joint: Noisy | None = None
    butterflies: Noisy | None = None
    about: Mapping[str, Any] | None = None

    def target(self, expected: Floats, sides: tuple[int, int]) -> Target:
        """The answers as the chain takes them, and how sure each is.

        Args:
            expected: What a random graph with the fitted degrees has, joint degrees and then slices.
            sides: The numbers of buckets on the left and on the right.
        """
        joint, noisy = math.prod(sides), self.noisy()
        shapes = {"joint": (sides, expected[:joint]), "butterflies": ((sides[1], sides[1] + BEYOND), expected[joint:])}
        least = min((answers.scale for answers in noisy.values()), default=1.0)
        rows = []
        for name, (shape, chance) in shapes.items():
            guess = None
            if (answers := noisy.get(name)) is not None:
                part = common(shape, answers.values.shape)
                seen = Noisy(answers.values[part], answers.scale)
                guess = (seen, *believed(seen, chance.reshape(shape)[part]))
            rows.append(aimed(shape, guess, SHARPNESS * least))
        wanted, weight, slack = map(np.concatenate, zip(*rows, strict=True))
        return Target(wanted, weight, slack, joint)


def common(*shapes: tuple[int, ...]) -> tuple[slice, ...]:
    """The cells that arrays of these shapes have in common."""
    return tuple(slice(0, min(sizes)) for sizes in zip(*shapes, strict=True))


def aimed(shape: tuple[int, ...], guess: tuple[Noisy, Floats, Floats] | None, worth: float) -> list[Floats]:
    """What the counts of a query should be, what a unit is worth and what is near enough, in rows; 0 where not asked.

    Args:
        shape: The cells that the chain counts.
        guess: The answers, the best guesses that follow from them, and how sure each of these is.
        worth: What a unit is worth, times the scale of the noise.
    """
    wanted, weight, slack = np.zeros((3, *shape))
    if guess is not None:
        answers, values, unsure = guess
        part = common(shape, values.shape)
        wanted[part], weight[part], slack[part] = values[part], worth / answers.scale, unsure[part]
    return [cells.ravel() for cells in (wanted, weight, slack)]


def degrees_of(degrees: Fit) -> Ints:
    """Degrees of nodes, in falling order: those of the posterior means, whose tail has no steps.

    A path has no posterior; there the fitted ones are taken.
    """
    try:
        heights = np.rint(np.cumsum(degrees.frequencies()[::-1])[::-1]).astype(np.int64)
    except PlanError:
        return np.asarray(degrees.sequence, np.int64)
    counted = -np.diff(np.maximum.accumulate(heights[::-1])[::-1], append=0)
    return np.repeat(np.arange(len(counted), 0, -1), counted[::-1])


def shrunken(noisy: Noisy, expected: Floats, spread: float) -> tuple[Floats, Floats]:
    """Answers, those that noise swamps moved to what is expected; and how sure each is, as noise of which scale.

    Each is an average of itself and of what is expected, by the variances of the noise and of the truth around what is
    expected: the square of `spread` times that (empirical Bayes). Answers far above their noise stay as they are.

    >>> found, unsure = shrunken(Noisy(np.array([900.0, -20.0]), 10.0), np.array([500.0, 5.0]), 1.0)
    >>> found.round(1).tolist(), unsure.round(1).tolist()
    ([899.7, 2.2], [10.0, 3.3])
    """
    return averaged(noisy, expected, (spread * expected) ** 2)


def believed(noisy: Noisy, expected: Floats) -> tuple[Floats, Floats]:
    """Answers, those that noise swamps moved to what is expected; and how sure each is, as noise of which scale.

    Each is an average of itself and of what is expected, by the variances of the noise and of the truth around what is
    expected: `SPREAD` times that, or what the answer is off it beyond noise (empirical Bayes, one answer at a time).

    >>> found, unsure = believed(Noisy(np.array([900.0, -8.0, 90.0]), 10.0), np.array([500.0, 5.0, 0.0]))
    >>> found.round(1).tolist(), unsure.round(1).tolist()
    ([899.7, 3.6, 87.8], [10.0, 3.3, 9.9])
    """
    beyond = (noisy.values - expected) ** 2 - 2 * noisy.scale**2
    return averaged(noisy, expected, np.maximum((SPREAD * expected) ** 2, beyond))


def averaged(noisy: Noisy, expected: Floats, around: Floats) -> tuple[Floats, Floats]:
    """The same, by the variance of the truth around what is expected."""
    trust = around / (around + 2 * noisy.scale**2)
    return expected + trust * (noisy.values - expected), noisy.scale * np.sqrt(np.maximum(trust, LEAST_SLACK**2))


def trusted(noisy: Noisy, expected: Floats) -> Floats:
    """How much of the variance of answers by degree is not noise: those that noise swamps are hardly told at all.

    There are too many of them, and each is too small, to move them one by one.
    """
    share = max(float((expected * noisy.values).sum()) / max(float((expected**2).sum()), 1e-9), 0.0)
    around = (share * expected) ** 2
    return np.asarray(around / (around + 2 * noisy.scale**2))


def common_share(noisy: Noisy, pairs: Floats, total: Noisy | None = None) -> float:
    """The share of its pairs of edges that each node closes, if all close the same, as the answers tell it together.

    The total of all triangles, where it was asked, is one answer more. Where noise swamps the buckets, it tells most.
    """
    share, each = 0.0, pairs
    whole = 0.0 if total is None else float(pairs.sum()) / (2 * total.scale**2)
    known_total = 0.0 if total is None else float(total.values[0])
    for _ in range(SHARE_ROUNDS):
        known = float(each @ pairs) + whole * float(pairs.sum())
        share = max((float(each @ noisy.values) + whole * known_total) / max(known, 1e-9), 0.0)
        each = pairs / ((SPREAD * share * pairs) ** 2 + 2 * noisy.scale**2)
    return share


SPREADS, REACHES, ROUGH = (0.5, 1.0, 2.0, 4.0), (0.5, 1.0, 2.0, 4.0, 8.0), 0.1
"""How far f lies from zero, over how many buckets it is alike, and how far from that by itself in each."""
ROUNDS, NEAR, LEAST, LEAST_LIKELY = 200, 1e-3, 1e-9, -700.0


def by_chance(degrees: Ints, buckets: int) -> Floats:
    """The joint degrees that simple graphs with these degrees have on average, in the buckets: nearly.

    Edges are there with chances x y / (1 + x y) that fit the degrees. Unlike d e / 2m, this is never above one, so two
    hubs are not joined more than once.

    >>> by_chance(np.array([2, 2, 2]), 2).round(2).tolist()
    [[0.37, 0.75], [0.0, 0.37]]
    """
    distinct, nodes = np.unique(degrees[degrees > 0], return_counts=True)
    fit = distinct / math.sqrt(max(float(distinct @ nodes), 1.0))
    for _ in range(ROUNDS):
        chance = np.outer(fit, fit) / (1 + np.outer(fit, fit))
        wrong = distinct / np.maximum(chance @ nodes - np.diag(chance), LEAST)
        fit = fit * np.sqrt(wrong)
        if np.all(abs(wrong - 1) < NEAR):
            break
    edges = chance * (np.outer(nodes, nodes) - np.diag(nodes))
    mix = shares(distinct, buckets)
    ends = mix.T @ edges @ mix / 2
    return np.asarray(np.triu(ends) - np.diag(np.diag(ends)) / 2)


def smoothed(answers: Floats, scale: float, degrees: Ints) -> tuple[Floats, Floats]:
    """The best guess of each cell, and its deviation; both in the upper half.

    >>> noisy = np.array([[900.0, 10.0], [0.0, 120.0]])
    >>> smoothed(noisy, 10.0, np.ones(2060, int))[0].round().tolist()
    [[515.0, 0.0], [0.0, 0.0]]
    """
    buckets, upper = len(answers), np.triu_indices(len(answers))
    rows = np.eye(buckets)[upper[0]] + np.eye(buckets)[upper[1]]
    chance = np.maximum(by_chance(degrees, buckets)[upper], LEAST)
    observed = np.concatenate([answers[upper], degrees @ shares(degrees, buckets) / 2])
    sure = np.concatenate([np.full(len(chance), 0.5 / scale**2), np.ones(buckets)])
    design = np.concatenate([np.eye(len(chance)), rows.T])
    guesses = [_guess(chance, observed, sure, design, likeness(buckets, *how)) for how in product(SPREADS, REACHES)]
    surprise, means, deviations = map(np.array, zip(*guesses, strict=True))
    likely = np.exp(np.maximum(surprise.min() - surprise, LEAST_LIKELY))
    guess = likely @ means / likely.sum()
    both = np.zeros((2, buckets, buckets))
    both[:, *upper] = guess, np.sqrt(likely @ (deviations**2 + (means - guess) ** 2) / likely.sum())
    return both[0], both[1]


def likeness(buckets: int, spread: float, reach: float) -> Floats:
    """How f goes together in two cells: by how far they are from each other, whichever end is named first."""
    i, j = np.triu_indices(buckets)
    distances = [(i[:, None] - rows) ** 2 + (j[:, None] - columns) ** 2 for rows, columns in ((i, j), (j, i))]
    alike = np.exp(-np.array(distances) / (2 * reach * reach)).sum(axis=0)
    size = np.sqrt(np.diag(alike))
    return np.asarray(spread**2 * alike / np.outer(size, size) + ROUGH**2 * np.eye(len(i)))


def _guess(
    chance: Floats, observed: Floats, sure: Floats, design: Floats, prior: Floats
) -> tuple[float, Floats, Floats]:
    """How unlikely the answers are, the likeliest cells and their deviations, by Newton's and Laplace's methods."""
    inverse = np.linalg.inv(prior)

    def cost(f: Floats) -> float:
        return float(sure @ (observed - design @ (chance * np.exp(f))) ** 2 + f @ inverse @ f) / 2

    def bend(f: Floats) -> tuple[Floats, Floats]:
        slope = design * (chance * np.exp(f))
        return inverse @ f - slope.T @ (sure * (observed - slope.sum(axis=1))), inverse + slope.T @ (
            sure[:, None] * slope
        )

    f, now = np.zeros(len(chance)), cost(np.zeros(len(chance)))
    for _ in range(ROUNDS):
        step = np.linalg.solve(*bend(f)[::-1])
        step /= max(float(abs(step).max()), 1.0)
        tried = [(cost(f - step * part), part) for part in (1.0, 0.5, 0.1, 0.01)]
        after, part = min(tried)
        if after > now - NEAR:
            break
        f, now = f - step * part, after
    curve = bend(f)[1]
    guess = chance * np.exp(f)
    surprise = now + (np.linalg.slogdet(curve)[1] + np.linalg.slogdet(prior)[1]) / 2
    return surprise, guess, guess * np.sqrt(np.diag(np.linalg.inv(curve)))
