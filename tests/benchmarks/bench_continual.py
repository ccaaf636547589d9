"""Noise of a running count at epsilon 1, for a horizon that nobody was told, beside trees that were told it.

    python tests/benchmarks/bench_continual.py

The table holds the exact mean, over the epochs up to a horizon, of the standard deviation, and the root of the mean
variance. The binary tree and the best tree of one base (with shares of the levels as good as can be) are told the
horizon, and so is Gaussian noise by factored sums, which costs a delta of 1e-6 beside epsilon; base 19 with shares
1 / (l (l + 1)) is what there was before segments; offline is one answer at the end alone.
Then the mean absolute error of a real measurement over 100,000 epochs, at every 97th epoch and for 40 bins, and its
time, in processor seconds.

Then keys that nobody named: the standard deviation and the largest threshold up to a horizon, at epsilon 1 and delta
1e-6 in all, beside a release at each epoch that spends an equal part of both; and beside Gaussian noise at each epoch
under zCDP (rho = 0.0175 in all), its threshold left out. And processor seconds of epochs of two million records, of ten
million keys of Zipf's law, and of five million records that are nearly all keys of their own.
"""

import math
import resource
from fractions import Fraction

import numpy as np
import polars as pl
from flags import flags

import wpinq
from wpinq.core.noise.counting_tree import BASES, parts, segment
from wpinq.core.noise.factored_sums import factors
from wpinq.core.noise.gaussian_curve import shift_of
from wpinq.core.noise.tails import lasting_threshold, share_at
from wpinq.core.noise.threshold import least_threshold
from wpinq.core.records.identity import integer_identities

DAYS, DELTA, RHO = (30, 100, 365, 1_000, 8_760), Fraction(1, 10**6), 0.0175
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


def factored(last):
    """Gaussian noise of (1, 1e-6) by factored sums."""
    sums, shift = factors(last), float(shift_of(Fraction(1), DELTA))
    row = sum(part * point ** np.arange(last) for part, point in zip(sums.parts, sums.points, strict=True))
    return np.cumsum(row**2) * float(sums.square) / shift**2


def offline(last):
    return np.full(last, 2 * math.exp(-1) / (1 - math.exp(-1)) ** 2)


def measured():
    """The mean and the largest absolute error of a real measurement, and milliseconds for one epoch."""
    views = wpinq.live({"page": "integer"}, budget=1)
    measurement = views.measure(1, continual=True)
    ids = integer_identities(np.arange(BINS), views._data.identity_key)
    before = seconds()
    found = [np.abs(measurement.times.noise.draw(epoch, ids)).mean() for epoch in range(1, EPOCHS + 1, STEP)]
    each = (seconds() - before) / len(found)
    views.close()
    return np.mean(found), np.max(found), each * 1e3


def seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def selected(last):
    """The mean standard deviation of keys up to a horizon, and the largest threshold of a record alone."""
    tau = 0
    for epoch in range(1, last + 1):
        if share_at(epoch):
            scales = [float(1 / segment(node.segment).shares[node.level]) for node in parts(epoch)]
            tau = max(tau, lasting_threshold(scales, 1, 1, 1, chance=DELTA * share_at(epoch)))
    return np.sqrt(segments(last)).mean(), tau


def keyed(rows, drawn, epochs):
    """Processor seconds of an epoch, keys that wait and that are published, and memory, after each epoch."""
    views = wpinq.live({"page": "integer"}, budget=1)
    keys, draw = views.select(1, continual=True), np.random.default_rng(1)
    for epoch in range(1, epochs + 1):
        views.send(pl.DataFrame({"page": drawn(draw, rows)}))
        before = seconds()
        views.advance()
        closed, before = seconds() - before, seconds()
        found = keys.release().frame.height
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"  epoch {epoch}: closed in {closed:.2f} s, {found:,} keys released in {seconds() - before:.2f} s, "
              f"{len(keys.times._total._settled()):,} held, {peak:.1f} GB")  # fmt: skip
    views.close()


def main(smoke):
    horizons = HORIZONS[:3] if smoke else HORIZONS
    trees = {"segments growing by 3": segments, "base 19, levels for ever": endless,
             "binary, told the horizon": binary, "best base, told the horizon": best,
             "Gaussian, delta 1e-6, told": factored, "offline": offline}  # fmt: skip
    print(f"{'mean / root mean square':28}" + "".join(f"{last:>16,}" for last in horizons))
    for name, tree in trees.items():
        row = [np.sqrt(tree(last)) for last in horizons]
        print(f"{name:28}" + "".join(f"{one.mean():9.1f} /{math.sqrt((one**2).mean()):5.1f}" for one in row))
    mean, worst, each = measured()
    print(f"\n{'keys, std / threshold':28}" + "".join(f"{last:>16,}" for last in DAYS))
    every = [(math.sqrt(2) * last, least_threshold(Fraction(last), 1, 1, DELTA / last)) for last in DAYS]
    for name, row in {"for ever": [selected(last) for last in DAYS], "each epoch by itself": every}.items():
        print(f"{name:28}" + "".join(f"{std:8.1f} /{tau:>6}" for std, tau in row))
    print(f"{'each epoch, Gaussian':28}" + "".join(f"{math.sqrt(last / 2 / RHO):9.1f}       " for last in DAYS))
    for name, most, drawn in (
        ("Zipf", 2_000_000, lambda draw, rows: (10**7 ** draw.random(rows)).astype(np.int64)),
        ("alone", 5_000_000, lambda draw, rows: draw.integers(0, 10**7, rows)),
    ):
        rows = most // 100 if smoke else most
        print(f"\n{rows:,} records of {name} keys in each epoch")
        keyed(rows, drawn, 4)
    print(f"\nmeasured: mean error {mean:.1f}, worst epoch {worst:.1f}, {each:.2f} ms for {BINS} bins")


if __name__ == "__main__":
    main(flags(__doc__).parse_args().smoke)
