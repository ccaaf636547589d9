"""Who is joined to whom, guessed from noisy answers: what chance makes of the degrees, times something that is smooth.

Cell (i, j) is what the simple graphs with these degrees have there on average, times exp(f), where f is normal around
zero and alike for buckets near each other: a Gaussian process. Its spread and reach are not known, so guesses under
several are averaged, each as far as the answers are likely under it. Graphs that are not random are what people ask
about, so the least spread is not small: where noise leaves it open, chance alone would always win. The sums of rows
follow from the degrees, so they are known. A cell that noise swamps then follows what the cells beside it have: where
large degrees seek each other, the few edges between the largest are not lost.

Source: Park and Newman, Physical Review E 70, 066117 (2004), for chance; Rasmussen and Williams, Gaussian Processes for
Machine Learning, MIT Press 2006, sec. 3.4 (Laplace's method), 5.2 (averages).
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from wpinq.postprocess.graphs.counts import Floats, Ints, shares

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
