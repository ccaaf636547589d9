"""Mean absolute error of a running count over 100,000 epochs at epsilon 1, for a horizon that nobody was told.

    python tests/benchmarks/bench_continual.py

Errors are those of the real noise of a real measurement, at every 97th epoch and for 40 bins. Naive re-release, which
must know the horizon, spends epsilon / 100,000 at each epoch; offline is one answer at the end.
"""

import math
import time
from fractions import Fraction

import numpy as np

import wpinq
from wpinq.measurements.charged import commit
from wpinq.measurements.continual import ContinualMeasurement
from wpinq.noise.counting_tree import BINARY, ELDERS, Tree
from wpinq.plan.stability import Survey
from wpinq.records.identity import integer_identities

EPOCHS, STEP, BINS = 100_000, 97, 40


def errors(tree):
    views = wpinq.live({"page": "integer"}, budget=1)
    kind = type("Measured", (ContinualMeasurement,), {"tree": tree})
    survey = Survey.of(views._node)
    quote = kind.quoted(survey, views._log, Fraction(1), noise="geometric", name=None, analyst=None)
    (measurement,) = commit([quote])
    ids = integer_identities(np.arange(BINS), views._data.identity_key)
    start = time.perf_counter()
    found = [np.abs(measurement._noise(epoch, ids)).mean() for epoch in range(1, EPOCHS + 1, STEP)]
    each = (time.perf_counter() - start) / len(found)
    views.close()
    return np.mean(found), np.max(found), each


def laplace(scale):
    """E|N| of a discrete Laplace."""
    r = math.exp(-1 / scale)
    return 2 * r / (1 - r * r)


def main():
    print(f"{'':34} mean error   worst epoch   ms for {BINS} bins")
    trees = {"base 19, signed (the default)": ELDERS, "binary tree": BINARY}
    trees |= {f"base {base}, signed": Tree(base, signed=True) for base in (3, 5, 9, 13, 25, 31)}
    for name, tree in trees.items():
        mean, worst, each = errors(tree)
        print(f"{name:34} {mean:10.1f}   {worst:11.1f}   {each * 1e3:.2f}")
    print(f"{'naive, told the horizon':34} {laplace(EPOCHS):10.1f}")
    print(f"{'offline, the last epoch alone':34} {laplace(1):10.1f}")


if __name__ == "__main__":
    main()
