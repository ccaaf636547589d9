"""Noise of a running count at epsilon 1, for a horizon that nobody was told, beside trees that were told it.

    python tests/benchmarks/bench_continual.py

The table holds the exact mean, over the epochs up to a horizon, of the standard deviation, and the root of the mean
variance. The binary tree and the best tree of one base (with shares of the levels as good as can be) are told the
horizon; base 19 with shares 1 / (l (l + 1)) is what there was before segments; offline is one answer at the end alone.
Then the mean absolute error of a real measurement over 100,000 epochs, at every 97th epoch and for 40 bins, and its
time, in processor seconds.
"""

import math
import resource

import numpy as np

import wpinq
from wpinq.noise.counting_tree import BASES, parts, segment
from wpinq.records.identity import integer_identities

HORIZONS = (100, 1_000, 10_000, 100_000, 1_000_000)
EPOCHS, STEP, BINS = 100_000, 97, 40


def digits(base, last, *, signed):
    """For each level how many nodes of a tree of one base make each prefix up to the last epoch."""
    rest, found = np.arange(1, last + 1), []
    while rest.any():
        digit = rest % base
        carry = signed & (digit > base // 2)
        found.append(np.where(carry, base - digit, digit))
        rest = rest // base + carry
    return found


def variances(found, shares):
    return sum(2 * many / share**2 for many, share in zip(found, shares, strict=True))


def segments(last):
    wide = {}
    for number in range(1 + int(math.log(last, 3))):
        wide |= {(number, level): 2 / float(share) ** 2 for level, share in enumerate(segment(number).shares)}
    return np.array([sum(wide[node[:2]] for node in parts(epoch)) for epoch in range(1, last + 1)])


def binary(last):
    found = digits(2, last, signed=False)
    return variances(found, [1 / len(found)] * len(found))


def endless(last):
    found = digits(19, last, signed=True)
    return variances(found, [1 / (level * (level + 1)) for level in range(1, len(found) + 1)])


def best(last):
    def tree(base):
        found = digits(base, last, signed=True)
        roots = [many.mean() ** (1 / 3) for many in found]
        return variances(found, [root / sum(roots) for root in roots])

    return min((tree(base) for base in BASES), key=np.mean)


def offline(last):
    return np.full(last, 2 * math.exp(-1) / (1 - math.exp(-1)) ** 2)


def measured():
    """The mean and the largest absolute error of a real measurement, and milliseconds for one epoch."""
    views = wpinq.live({"page": "integer"}, budget=1)
    measurement = views.measure(1, continual=True)
    ids = integer_identities(np.arange(BINS), views._data.identity_key)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    found = [np.abs(measurement._noise(epoch, ids)).mean() for epoch in range(1, EPOCHS + 1, STEP)]
    each = (resource.getrusage(resource.RUSAGE_SELF).ru_utime - before) / len(found)
    views.close()
    return np.mean(found), np.max(found), each * 1e3


def main():
    trees = {"segments growing by 3": segments, "base 19, levels for ever": endless,
             "binary, told the horizon": binary, "best base, told the horizon": best, "offline": offline}  # fmt: skip
    print(f"{'mean / root mean square':28}" + "".join(f"{last:>16,}" for last in HORIZONS))
    for name, tree in trees.items():
        row = [np.sqrt(tree(last)) for last in HORIZONS]
        print(f"{name:28}" + "".join(f"{one.mean():9.1f} /{math.sqrt((one**2).mean()):5.1f}" for one in row))
    mean, worst, each = measured()
    print(f"\nmeasured: mean error {mean:.1f}, worst epoch {worst:.1f}, {each:.2f} ms for {BINS} bins")


if __name__ == "__main__":
    main()
