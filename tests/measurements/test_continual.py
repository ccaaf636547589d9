"""Continual release: the tree, its budget, its noise, what it is refused for. Attacks 8, 40, 43; rules 5, 11, 36."""

import math
from fractions import Fraction

import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

import wpinq
from wpinq.measurements.changes import Changes
from wpinq.measurements.charged import commit
from wpinq.measurements.continual import ContinualMeasurement
from wpinq.noise.counting_tree import BINARY, ELDERS, Tree
from wpinq.plan.stability import Survey
from wpinq.records.bins import bin_frame
from wpinq.records.identity import identities
from wpinq.records.weights import WeightType
from wpinq.state.histogram import Histogram

TYPED = {"user": "text", "page": "text"}
EXACT = 500  # levels up to 2 have noise of scale 6/500: none but for a probability of e^-83
TREES = [BINARY, Tree(3, signed=True), ELDERS]


def page(user, page):
    return page


@pytest.fixture
def views():
    source = wpinq.live(TYPED, budget=10**6)
    yield source
    source.close()


def covered(tree, epoch, last):
    """How often each epoch up to the last is counted in an answer."""
    counts = np.zeros(last + 1, int)
    for level, index, sign in tree.parts(epoch):
        size = tree.base ** (level - 1)
        counts[index * size : (index + 1) * size] += sign
    return counts[:last]


@pytest.mark.parametrize("tree", TREES)
def test_the_nodes_of_an_epoch_count_every_epoch_before_it_once_and_later_ones_never(tree):
    for epoch in range(1, 400):
        assert covered(tree, epoch, 7000).tolist() == [1] * epoch + [0] * (7000 - epoch)


@pytest.mark.parametrize("tree", TREES)
def test_rule_36_all_levels_for_ever_spend_epsilon(tree):
    spent = Fraction(0)
    for level in range(1, 200):
        spent += Fraction(1, tree.share(level))
        assert 0 < 1 - spent == Fraction(1, level + 1), "what later levels may still spend is never gone"


def test_attack_43_a_record_moves_one_node_of_each_level(views):
    """So the loss of one record over all answers at all epochs is the sum over the levels of 1 / scale: epsilon."""
    m = views.map(page).measure("0.5", continual=True)
    loss = sum(Fraction(1) / m._level(level).scale for level in range(1, 40))
    assert loss == Fraction(1, 2) * (1 - Fraction(1, 40))
    for tree in TREES:
        nodes = {}
        for epoch in range(1, 300):
            for level, index, sign in tree.parts(epoch):
                nodes.setdefault((level, index), set()).add(sign)
        for level in range(1, 6):
            size = tree.base ** (level - 1)
            assert all(index >= 0 for found, index in nodes if found == level)
            holds = [index for found, index in nodes if found == level and index * size <= 100 < (index + 1) * size]
            assert len(holds) <= 1


class Binary(ContinualMeasurement):
    tree = BINARY


def followed(views, kind, epsilon):
    """A measurement with another tree."""
    survey = Survey.of(views.map(page)._node)
    quote = kind.quoted(survey, views._log, Fraction(epsilon), noise="geometric", name=None, analyst=None)
    (m,) = commit([quote])
    return m


def test_answers_at_every_epoch_are_the_counts_up_to_it(views):
    views.send([("ann", "home")] * 3)
    views.advance()
    m = views.map(page).measure(EXACT, continual=True)
    for epoch in range(2, 40):
        views.send([("ann", "home")] * (epoch % 3) + [("bob", "news")])
        assert views.advance() == epoch
    wanted = np.cumsum([3, *(epoch % 3 for epoch in range(2, 40))])
    for epoch in range(2, 40):
        assert m.observe_many(["home", "news", "none"], epoch=epoch).tolist() == [wanted[epoch - 1], epoch - 1, 0]
    assert m.observe("home") == wanted[-1]


def test_attack_40_only_closed_epochs_and_those_after_the_measurement(views):
    views.advance()
    m = views.map(page).measure(EXACT, continual=True)
    for epoch in (None, 1, 2):
        with pytest.raises(wpinq.NotReadyError):
            m.observe("home", epoch=epoch)
    views.advance()
    assert m.observe("home", epoch=2) == 0
    for epoch in (-1, 0, 1, 3):
        with pytest.raises(wpinq.NotReadyError):
            m.observe("home", epoch=epoch)


def test_one_charge_for_ever(views):
    m = views.map(page).measure("0.25", continual=True)
    for _ in range(5):
        views.advance()
        m.observe("home")
    assert views._data.ledger.spent()[0] == Fraction(1, 4)
    assert len(views._data.ledger.entries()) == 2


def test_attack_08_made_again_later_it_is_the_same_release(views):
    """Noise on epochs counted from its own making would cancel between the two: the difference would be exact."""
    first = views.map(page).measure(1, continual=True)
    bins = [str(i) for i in range(300)]
    said = {}
    for epoch in range(1, 30):
        views.send([("ann", one) for one in bins])
        views.advance()
        said[epoch] = first.observe_many(bins)
    again = views.map(page).measure(1, continual=True)
    assert views._data.ledger.spent()[0] == 1
    views.send([("ann", one) for one in bins] * 3)
    views.advance()
    assert again.observe_many(bins).tolist() == first.observe_many(bins).tolist()
    with pytest.raises(wpinq.NotReadyError, match="made after epoch 29"):
        again.observe("0", epoch=29)
    for epoch, values in said.items():
        assert np.std(again.observe_many(bins) - values) > 1, f"the difference to epoch {epoch} is noisy"


def test_attack_08_rule_05_averaging_over_epochs_gains_nothing(views):
    """The big node of epochs 4 to 7 keeps its noise while the histogram changes. Redrawn, answers would differ by
    sqrt(2) * 12 * sqrt(2) = 24 or more; they differ by one small node of scale 2: standard deviation 2.8."""
    m = followed(views, Binary, 1)
    found = []
    bins = [str(i) for i in range(2000)]
    for _ in range(7):
        views.send([("ann", one) for one in bins])
        views.advance()
        found.append(m.observe_many(bins) - len(found) - 1)
    assert np.std(found[4] - found[3]) == pytest.approx(math.sqrt(8), rel=0.2)
    assert np.std(found[3]) == pytest.approx(math.sqrt(2) * 12, rel=0.1)
    for epoch, noise in enumerate(found, 1):
        assert (m.observe_many(bins, epoch=epoch) - epoch == noise).all(), "asked again, the same answer"


def test_noise_is_as_wide_as_it_says_at_every_kind_of_epoch(views):
    """4,000 bins: the standard deviation of a sample one is off by 8% with a probability below 1e-6."""
    m = views.map(page).measure(1, continual=True)
    bins = [str(i) for i in range(4000)]
    for epoch in range(1, 30):
        views.advance()
        if epoch in (1, 8, 9, 10, 18, 19, 28):
            noise = m.observe_many(bins)
            assert np.std(noise) == pytest.approx(m.deviation(), rel=0.08)
            assert abs(noise.mean()) < 6 * m.deviation() / math.sqrt(len(bins))
            assert (abs(noise) <= m.interval("0.9")).mean() >= 0.9
            assert m.interval("0.9") < 4 * m.deviation()


def test_explain_tells_the_noise_of_all_nodes_and_not_of_one(views, capsys):
    """It said that noise of scale 1 moves a bin by 3 at most; at epoch 3,000 it does by 100."""
    measured = views.map(page).measure(epsilon=1, continual=True)
    text = measured.explain()
    assert "at most" not in text and "data set 'live': epsilon 1" in text
    for _ in range(100):
        views.advance()
    assert measured.deviation() > 5 and f"{measured.deviation():.4g} at epoch 100," in text
    assert capsys.readouterr().out == text + "\n"


def test_an_accuracy_that_would_not_hold_at_later_epochs_is_refused(views):
    with pytest.raises(wpinq.errors.PlanError, match=r"within=.*widens with the epochs"):
        views.map(page).measure(within=50, continual=True)


def test_nodes_releases_and_bins_have_noise_of_their_own(views):
    one, two = (views.map(page).measure(1, name=name, continual=True) for name in ("one", "two"))
    bins = [str(i) for i in range(3000)]
    found = []
    for _ in range(4):
        views.advance()
        found += [one.observe_many(bins), two.observe_many(bins)]
    first, second, again = found[0], found[1], found[2] - found[0]
    for x, y in ((first, second), (first, again), (first[1:], first[:-1])):
        assert abs(np.corrcoef(x, y)[0, 1]) < 0.1


def test_laplace_and_fractional_weights(views):
    halves = views.flat_map(lambda user, page: [user, page])
    m = halves.measure(EXACT, continual=True, mechanism="laplace")
    views.send([("ann", "home")])
    views.advance()
    assert m.observe("home") == pytest.approx(0.5, abs=0.05)


def test_every_linear_step_is_allowed(views):
    pages = views.map(page)
    split = pages.concat(views.filter(lambda user: user != "eve").map(page)).partition("page", ["home", "news"])
    m = split["home"].subtract(pages).measure(EXACT, continual=True)
    views.send([("ann", "home"), ("eve", "home"), ("ann", "news")])
    views.advance()
    assert m.observe_many(["home", "news"]).tolist() == [1, -1]


REFUSED = {
    "shave": lambda views: views.map(page).shave(),
    "distinct": lambda views: views.distinct(),
    "group_by": lambda views: views.group_by("user", len),
    "join": lambda views: views.join(views, on="user"),
    "union": lambda views: views.union(views.filter(lambda user: user == "ann")),
    "intersect": lambda views: views.intersect(views.filter(lambda user: user == "ann")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_rule_11_steps_in_which_records_meet_are_refused(views, name):
    with pytest.raises(wpinq.PlanError, match=r"Use window\(\.\.\.\)"):
        REFUSED[name](views).measure(1, continual=True)
    assert views._data.ledger.spent()[0] == 0


def test_rule_12_of_people_the_first_records_are_kept_for_ever_and_nothing_is_taken_back():
    source = wpinq.live(TYPED, budget=10**6, unit=wpinq.users("user", at_most=3))
    pages = source.map(page)
    m = pages.measure(3 * EXACT, continual=True)
    assert m.scale == Fraction(3, 3 * EXACT), "a user moves the nodes of a level by three in all"
    assert source._data.ledger.spent()[0] == 3 * EXACT
    late = None
    for epoch in range(1, 8):
        source.send([("ann", f"page {epoch}"), ("ann", f"page {epoch}"), (f"user {epoch}", "home")])
        source.advance()
        if epoch == 4:
            late = pages.measure(3 * EXACT, name="made later", continual=True)
            more = source.filter(lambda user: user == "ann").map(page).measure(3 * EXACT, continual=True)
        total = m.observe_many([f"page {n}" for n in range(1, 8)]).tolist()
        assert total == ([2, 1, 0, 0, 0, 0, 0] if epoch > 1 else [2, 0, 0, 0, 0, 0, 0])
        assert m.observe("home") == epoch
    for one in (late, more):
        assert one.observe_many(["page 1", "page 2", "page 3"]).tolist() == [2, 1, 0]
    source.close()


users = st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("wxyz")), max_size=8), max_size=5)


@settings(max_examples=10)
@given(users, st.integers(1, 4))
def test_rule_12_without_a_user_nothing_else_moves_and_the_user_moves_no_more_than_the_bound(epochs, most):
    """Over all epochs together, which is what the tree's noise is good for: not by the difference of two samples."""
    streams = []
    for left_out in ("a", None):
        source = wpinq.live(TYPED, budget=1, unit=wpinq.users("user", at_most=most), secret=SECRET)
        source.measure(1, continual=True)
        found, before = [], {}
        for rows in epochs:
            source.send([row for row in rows if row[0] != left_out])
            source.advance()
            now = weights(source)
            found.append({key: now[key] - before.get(key, 0) for key in now if now[key] != before.get(key, 0)})
            before = now
        streams.append(found)
        source.close()
    without, whole = streams
    moved = 0
    for one, other in zip(without, whole, strict=True):
        for key in {*one, *other}:
            moved += abs(one.get(key, 0) - other.get(key, 0))
        assert all(value > 0 for value in other.values()), "nothing is taken back"
        assert one.items() <= other.items()
    mine = sum(row[0] == "a" for rows in epochs for row in rows)
    assert moved == min(mine, most)


def test_a_plan_that_is_made_later_keeps_the_same_first_records():
    """The name of the release does not tell when it was made, so under one noise there must be one histogram."""
    found = []
    for late in (0, 2, 4):
        source = wpinq.live(TYPED, budget=9, unit=wpinq.users("user", at_most=4), secret=SECRET)
        for epoch in range(5):
            if epoch == late:
                source.measure(1, continual=True)
            source.send([("ann", f"{epoch} {n}") for n in range(3)])
            source.advance()
        found.append(weights(source))
        source.close()
    assert found[0] == found[1] == found[2]
    assert sum(found[0].values()) == 4


SECRET = wpinq.Secret.fresh()


def weights(source):
    (kept,) = source._running._kept.values()
    ids, found = kept.total.content()
    return {one.tobytes(): weight for one, weight in zip(ids, found.tolist(), strict=True)}


@given(st.dictionaries(st.tuples(st.sampled_from("ab"), st.integers(0, 5)), st.integers(1, 4), max_size=8))
def test_the_first_records_are_those_of_the_reference_engine(weights):
    from wpinq.operators.contribution.first import first
    from wpinq.plan.rewrite import rewrite

    people = wpinq.protect([], budget=1, columns={"user": "text", "n": "integer"}, unit=wpinq.users("user", at_most=5))
    plan = people._then(rewrite(people._node, first))
    given_ = {record: Fraction(weight) for record, weight in weights.items()}
    driver = strategies.Driver(plan)
    driver.feed(given_)
    assert strategies.same(driver.histogram, plan._node, strategies.expected(plan, given_))


def test_rule_12_bounds_that_retract_are_refused():
    for unit in (wpinq.users("user", at_most=3, per=("page", 1)), wpinq.users("user", shared=True)):
        source = wpinq.live(TYPED, budget=1, unit=unit)
        with pytest.raises(wpinq.PlanError, match=r"not linear|not kept over epochs"):
            source.map(page).measure(1, continual=True)
        assert source._data.ledger.spent()[0] == 0


def test_finite_sources_and_windows_are_refused(views):
    with pytest.raises(wpinq.PlanError, match=r"wpinq\.live"):
        wpinq.protect([], budget=1, columns=TYPED).measure(1, continual=True)
    timed = wpinq.live({"time": "timestamp"}, budget=1)
    with pytest.raises(wpinq.PlanError, match="window"):
        timed.window("1h", at="time").measure(1, continual=True)
    m = views.map(page).measure(1, continual=True)
    with pytest.raises(wpinq.PlanError, match="bin by bin"):
        m.release()


def test_rule_11_why_shave_is_refused():
    """One view more at the very first, and every degree step comes one epoch earlier: the stream of changes moves by 59
    in 30 epochs, where a tree's noise is good for 1. The same stream of a linear plan moves by 1."""
    pages = strategies.protected(page="integer")
    linear = moved(pages, 30)
    shaved = moved(pages.shave().map(lambda page, index: index), 30)
    assert linear == 1
    assert shaved == 2 * 30 - 1


def moved(plan, epochs):
    streams = []
    for first in (1, 2):
        driver, stream, before = strategies.Driver(plan), [], np.zeros(epochs + 3)
        for epoch in range(epochs):
            driver.feed({(0,): Fraction(first if epoch == 0 else 1)})
            frame = bin_frame(range(epochs + 3), driver.root.schema)
            now = driver.histogram.lookup(frame, identities(frame, driver.root.schema, driver.key))
            stream.append(now - before)
            before = now
        streams.append(np.array(stream))
    return np.abs(streams[0] - streams[1]).sum()


@settings(max_examples=5)
@given(st.integers(0, 2**32 - 1))
def test_every_prefix_stays_at_hand(seed):
    """Past two merges of 16 changes: 300 epochs."""
    draw = np.random.default_rng(seed)
    schema, key = strategies.protected(bin="integer")._node.schema, bytes(16)
    frame = bin_frame(range(5), schema)
    ids = identities(frame, schema, key)
    changes, total = Changes(lambda: Histogram(schema, key)), np.zeros((301, 5), int)
    for epoch in range(1, 301):
        weights = draw.integers(-2, 3, 5)
        change = Histogram(schema, key)
        records = {(i,): Fraction(int(w)) for i, w in enumerate(weights)}
        change.absorb(strategies.batch_of(records, schema, WeightType(1)))
        changes.append(change)
        total[epoch] = total[epoch - 1] + weights
    for epoch in range(301):
        assert changes.lookup(epoch, frame, ids).tolist() == total[epoch].tolist()


def test_the_signed_tree_is_better_than_the_binary_one_by_far():
    """Their deviations at 100,000 epochs; errors are measured in benchmarks/bench_continual."""
    epochs = range(1, 100_000, 37)
    wide = {tree: np.mean([math.sqrt(variance(tree, epoch)) for epoch in epochs]) for tree in (BINARY, ELDERS)}
    assert wide[ELDERS] < wide[BINARY] / 5


def variance(tree, epoch):
    return sum(2 * tree.share(level) ** 2 for level, _, _ in tree.parts(epoch))
