"""An empirical audit: epsilon estimated from released values alone, for whole pipelines, on neighbouring inputs.

For neighbours A and B and an event E, epsilon is at least log(P(E | A) / P(E | B)), either way round. The audit draws
many releases of each, takes Clopper-Pearson bounds of both probabilities, and reports the largest lower bound over all
events. What is sound stays below what the ledger charged; three mechanisms broken on purpose are caught.

Each bound fails with probability 1e-7 at most; an audit looks at under 200 events both ways, so a false alarm of any of
the sound ones below has probability under 1e-3. Secrets are fixed, so a run gives what it gave before.
"""

import hashlib
import math
import os
from fractions import Fraction

import numpy as np
import pytest
from depth import deep, thin
from scipy.stats import beta, norm

import wpinq
from wpinq.core.engines import select
from wpinq.core.ledger import Ledger
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.measurements import measurement
from wpinq.core.measurements.epoch_noise import TreeNoise
from wpinq.core.noise import DiscreteLaplace, gaussian
from wpinq.core.noise import mechanism as true_mechanism
from wpinq.core.noise.counting_tree import segment
from wpinq.core.noise.gaussian import DiscreteGaussian
from wpinq.core.plan.node import sources, steps
from wpinq.core.pricing import privacy_cost, quote

ALPHA = 1e-7
AUDITED = {"user": str, "page": str}


@pytest.fixture(autouse=True)
def one_identity(monkeypatch):
    """Ledgers in memory have random identities, which are in the keys; with one for all a run gives what it gave."""
    monkeypatch.setattr(Ledger, "identity", property(lambda _: "audit"), raising=False)


def bounds(hits, trials):
    """Clopper-Pearson: each side wrong with probability ALPHA."""
    low = 0.0 if hits == 0 else beta.ppf(ALPHA, hits, trials - hits + 1)
    high = 1.0 if hits == trials else beta.ppf(1 - ALPHA, hits + 1, trials - hits)
    return low, high


def lower_bound(a, b, events):
    """The largest epsilon that the events prove, given statistics of releases of A and of B."""
    best = 0.0
    for event in events:
        (low_a, high_a), (low_b, high_b) = (bounds(int(event(one).sum()), len(one)) for one in (a, b))
        for low, high in ((low_a, high_b), (low_b, high_a)):
            if low > 0:
                best = max(best, math.log(low / high))
    return best


def thresholds(a, b):
    """Events `value >= t`, `value <= t` at the quantiles of both, and what floats betray: digits below a grid."""
    cuts = np.unique(np.quantile(np.concatenate([a, b]), np.linspace(0.01, 0.99, 25)))
    events = [lambda x, t=t: x >= t for t in cuts] + [lambda x, t=t: x <= t for t in cuts]
    for digits in (20, 40, 50, 53):
        events.append(lambda x, digits=digits: (np.abs(x) < 0.5) & (x * 2.0**digits != np.round(x * 2.0**digits)))
    events.append(lambda x: x == 0)
    return events


def audit(a, b):
    return lower_bound(a, b, thresholds(a, b))


def secrets(seed):
    return Secret(hashlib.blake2b(repr(seed).encode(), digest_size=32).digest())


def protected(records, secret):
    return wpinq.protect(records, budget=10**6, secret=secret, version="1", name="audit", columns=AUDITED)


# Many bins: a page for each trial, with one view in A and none in B. Bins have independent noise, and each is a
# neighbouring pair of its own.

BINS = [f"p{i}" for i in range(40_000)]


def many_bins(build, more, less, epsilon, **settings):
    """Values of all pages where each has `more` views, and where each has `less`."""
    found = []
    for views in (more, less):
        records = [(f"u{i}", page) for page in BINS for i in range(views)]
        m = build(protected(records, secrets(("bins", views)))).measure(epsilon, **settings)
        assert m.key_owner.ledger.spent()[0] == Fraction(epsilon)
        bins = [(page, more) for page in BINS] if len(m.node.schema) == 2 else BINS
        found.append(m.observe_many(bins).astype(float))
    return found


PIPELINES = {
    "map": lambda views: views.map(lambda page: page),
    "filter": lambda views: views.filter(lambda user: user != "u9").map(lambda user, page: page),
    "plain python": lambda views: views.map(lambda page: "".join([*page])),
    "shave": lambda views: views.map(lambda page: page).shave(),
    "thin slices": lambda views: views.map(lambda page: page).shave("1/3").map(lambda page, index: page),
}


@thin(4)
@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("mechanism", ["geometric", "laplace"])
def test_what_is_released_costs_no_more_than_was_charged(name, mechanism):
    a, b = many_bins(PIPELINES[name], 2, 1, 1, mechanism=mechanism)
    found = audit(a, b)
    assert found <= 1, "more was released than was charged"
    assert found > 0.85, "and nearly all that was charged was released: the audit has power"


def test_a_pair_of_uses_costs_no_more_than_was_charged():
    """Both uses move the same bin by 2; the noise is twice as wide."""
    a, b = many_bins(lambda views: views.map(lambda page: page).concat(views.map(lambda page: page)), 1, 0, 1)
    assert 0.85 < audit(a, b) <= 1


# Continual release: a view of each page at epoch 4, in segment 1 (epochs 3 to 8), or none. It moves two nodes, of which
# each is seen by itself: the answers at epochs 4 and 3 differ by one, those at 8 and 2 by that of the whole segment.


def followed(views, tight=1):
    """For each page the logarithm of how much likelier all answers are with the view than without it."""
    live = wpinq.live(AUDITED, budget=1, secret=secrets(("continual", views, tight)), name="audit")
    m = live.map("page").measure(1, continual=True)
    for epoch in range(1, 9):
        live.send([("u", page) for page in BINS] * (views if epoch == 4 else 0))
        live.advance()
    node, whole = (np.subtract(*(m.observe_many(BINS, epoch=one) for one in pair)) for pair in ((4, 3), (8, 2)))
    live.close()
    return sum(float(share) * (abs(x) - abs(x - 1)) for share, x in zip(segment(1).shares, (node, whole), strict=True))


@deep
def test_all_answers_of_a_continual_release_cost_no_more_than_was_charged(monkeypatch):
    """And nearly all of it: no share is wasted on that epoch. Shares that sum to 2 (planted) are found out."""
    monkeypatch.setattr(os, "urandom", bytes)  # names the version of a live source
    assert 0.85 < audit(followed(1), followed(0)) <= 1
    true = TreeNoise.level
    monkeypatch.setattr(TreeNoise, "level", lambda *node: DiscreteLaplace(true(*node).scale / 2))
    assert audit(followed(1, tight=2), followed(0, tight=2)) > 1


# Gaussian noise loses no more than rho. What a test of A against B tells is summed up by mu, the distance of two normal
# laws of variance 1 that are as hard to tell apart: at most sqrt(2 rho).


def gaussian_mu(build, rho):
    """The largest mu that events over many bins prove, whose values move by 1."""
    found = []
    for views in (2, 1):
        records = [(f"u{i}", page) for page in BINS for i in range(views)]
        data = wpinq.protect(
            records, rho=10**6, secret=secrets(("bins", views)), version="1", name="audit", columns=AUDITED
        )
        m = build(data).measure(rho=rho, mechanism="gaussian")
        assert m.key_owner.ledger.divergence == Fraction(rho)
        bins = [(page, 2) for page in BINS] if len(m.node.schema) == 2 else BINS
        found.append(m.observe_many(bins).astype(float))
    a, b = found
    best = 0.0
    for event in thresholds(a, b):
        (low_a, high_a), (low_b, high_b) = (bounds(int(event(one).sum()), len(one)) for one in (a, b))
        for low, high in ((low_a, high_b), (low_b, high_a)):
            best = max(best, float(norm.ppf(low) - norm.ppf(high)))
    return best


@thin(3)
@pytest.mark.parametrize("name", PIPELINES)
def test_what_gaussian_noise_releases_costs_no_more_than_was_charged(name):
    found = gaussian_mu(PIPELINES[name], "0.125")
    assert 0.8 * 0.5 < found <= 0.5


# Whole distributions: one more view of one page moves degrees and ranks of all. A trial has a secret of its own.

TRIALS = 1200
WEIGHTS = {"p1": 3, "p2": 2, "p3": 2, "p4": 1}
RANGE = range(1, 8)


@pytest.fixture
def one_run(monkeypatch):
    """Histograms of ranges hold no keyed identity, so those of one input are computed once for all secrets."""
    true, kept = select.large, {}

    def large(job):
        key = (*(len(steps(root)) for root in job.roots), len(sources(job.roots[0])[0].reader.frame))
        if key not in kept:
            kept[key] = true(job)
        return kept[key]

    monkeypatch.setattr(select, "large", large)
    return kept


def released(weights, epsilon, seed):
    """What the CDF and the sequence of all of the data release, a row for each of many secrets."""
    records = [(f"u{i}", page) for page, number in weights.items() for i in range(number)]
    rows = []
    for trial in range(TRIALS):
        pages = protected(records, secrets((seed, trial))).map(lambda page: page)
        measured = [curve(pages).measure(epsilon) for curve in (wpinq.degrees.cdf, wpinq.degrees.sequence)]
        rows.append([one.observe_many(RANGE) for one in measured])
    assert measured[0].key_owner.ledger.spent()[0] == 2 * Fraction(epsilon)
    return np.array(rows, float)


@deep
@pytest.mark.slow
def test_whole_distributions_cost_no_more_than_was_charged(one_run):
    """The statistic is the least of the values that move, each with the sign of its movement: all of them or none."""
    both = released({**WEIGHTS, "p2": 3}, "0.8", "more"), released(WEIGHTS, "0.8", "less")
    assert len(one_run) == 2, "of each input both curves together"
    for curves in ([0], [1], [0, 1]):  # shaved once, shaved twice, and both together
        a, b = (one[:, curves].reshape(TRIALS, -1) for one in both)
        moved = np.sign(np.round(a.mean(axis=0) - b.mean(axis=0), 0))  # they differ by whole numbers
        assert 0 < np.abs(moved).sum() <= len(curves), "each measurement moves by one in all"
        columns = np.flatnonzero(moved)
        found = audit((a * moved)[:, columns].min(axis=1), (b * moved)[:, columns].min(axis=1))
        assert found <= 0.8 * len(curves), curves
        assert found > 0.3 * len(curves), f"the audit has power: {curves}"


# Broken on purpose.


def test_half_the_sigma_is_caught(monkeypatch):
    monkeypatch.setattr(gaussian, "DiscreteGaussian", lambda square: DiscreteGaussian(square / 4))
    monkeypatch.setattr(DiscreteGaussian, "rho", lambda noise, moved: moved / (8 * noise.square))
    costs = quote.gaussian_costs
    monkeypatch.setattr(quote, "gaussian_costs", lambda survey, square: costs(survey, square * 4))
    assert gaussian_mu(PIPELINES["map"], "0.125") > 0.8


def test_half_the_scale_is_caught(monkeypatch):
    monkeypatch.setattr(privacy_cost, "mechanism", lambda name, scale: true_mechanism(name, scale / 2))
    a, b = many_bins(PIPELINES["map"], 2, 1, 1)
    assert audit(a, b) > 1.5


def test_noise_in_floats_is_caught(monkeypatch):
    """`truth + numpy.random.laplace()`: near zero, a truth of 0 has digits that a truth of 1 cannot have."""

    def naive(self, true, noise):
        return true + np.random.default_rng(7).laplace(0, float(self.scale), len(true))

    monkeypatch.setattr(measurement.Measurement, "_released", naive)
    a, b = many_bins(PIPELINES["map"], 1, 0, 1)
    assert audit(a, b) > 3


def pairs(moved):
    """What is released before and after an update: 4,000 pages; the update adds a view of each, or of none."""
    values = []
    for views in (1, 1 + moved):
        records = [(f"u{i}", page) for page in BINS[:4000] for i in range(views)]
        m = PIPELINES["map"](protected(records, secrets("pairs"))).measure(1)
        values.append(m.observe_many(BINS[:4000]).astype(float))
    return values[1] - values[0]


def test_noise_reused_on_changed_data_is_caught(monkeypatch):
    """Two releases around an update are worth 2 epsilon together, and their difference no more than that."""
    true = Secret.derive

    def without_digest(self, purpose, *context, size=32):
        return true(self, purpose, *(context[:1] if purpose == "noise" else context), size=size)

    def fresh():
        """No update: the same data under another version, which is another release."""
        records = [("u0", page) for page in BINS[:4000]]
        second = wpinq.protect(
            records, budget=10**6, secret=secrets("pairs"), version="2", name="audit", columns=("user", "page")
        )
        first = protected(records, secrets("pairs")).map(lambda page: page).measure(1).observe_many(BINS[:4000])
        return (second.map(lambda page: page).measure(1).observe_many(BINS[:4000]) - first).astype(float)

    assert audit(pairs(1), fresh()) <= 2
    monkeypatch.setattr(Secret, "derive", without_digest)
    assert audit(pairs(1), pairs(0)) > 5


def test_the_audit_itself():
    """On a law that we know: its bound is below the truth, and near it."""
    generator = np.random.default_rng(3)
    p = 1 - math.exp(-1.0)
    noise = generator.geometric(p, (2, 40_000)) - generator.geometric(p, (2, 40_000))
    assert 0.85 < audit(noise[0] + 1.0, noise[1] + 0.0) <= 1
    assert audit(noise[0] + 0.0, noise[1] + 0.0) < 0.2
