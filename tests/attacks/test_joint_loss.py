"""No answers together lose more than the ledger was charged: random streams and questions, in exact arithmetic.

Of each question the true histograms of two neighbouring streams are taken. The privacy loss of all answers is at most
the sum of their movements, each over the scale of its noise; it is compared with what the ledger shows, and their
Renyi divergence at several orders with what the curves in its rows add up to.
"""

import json
import random
from fractions import Fraction

import pytest
from depth import deeper, often, thin

import wpinq
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.ledger.sums.cost import Composition, costs_of
from wpinq.core.ledger.sums.renyi import rate
from wpinq.core.measurements.continual import EveryEpoch
from wpinq.core.plan.node import sources
from wpinq.core.runs.key_recovery import present

SEEDS = (0, 15, 91, 1, 2, 3)
"""The second and third find parts that are named without their epoch: of records, and of people."""
RETURNS = (13,)
ONE = Secret(bytes(range(32)))
COLUMNS = {"user": "text", "page": "integer", "time": "integer"}


def ledger_of(collection):
    return sources(collection._node)[0].ledger


class QuotedAggregate:
    """What was asked in one run: the true histogram of each question that was charged, and the scale of its noise."""

    def __init__(self):
        self.questions, self.found = set(), []

    def add(self, measurement):
        if measurement.question not in self.questions:
            self.questions.add(measurement.question)
            histogram, _ = measurement._settled()
            self.found.append((measurement, bins(histogram, measurement.node)))

    def add_changes(self, measurement, changes):
        if measurement.question not in self.questions:
            self.questions.add(measurement.question)
            self.found += [(measurement, bins(change, measurement.node)) for change in changes]


def bins(histogram, node):
    return {
        tuple(one): int(weight)
        for _, ids, weights in present(histogram, node)
        for one, weight in zip(ids.tolist(), weights.tolist(), strict=True)
    }


def loss(one, other):
    """The largest privacy loss of all answers together: of Laplace noise it is the movement over its scale."""
    assert len(one.found) == len(other.found)
    total = Fraction(0)
    for (m, ours), (_, theirs) in zip(one.found, other.found, strict=True):
        moved = sum(abs(ours.get(x, 0) - theirs.get(x, 0)) for x in {**ours, **theirs})
        total += Fraction(moved, m.node.resolution) / m.scale
    return total


def divergence(one, other, order):
    """The Renyi divergence of all answers together: of each bin by how far it moved; of a tree by what moved in all."""
    total, trees = Fraction(0), {}
    for (m, ours), (_, theirs) in zip(one.found, other.found, strict=True):
        step = 1 / (m.scale * m.node.resolution)
        moves = [step * abs(ours.get(x, 0) - theirs.get(x, 0)) for x in {**ours, **theirs}]
        if m.times.continual:
            trees[m] = trees.get(m, 0) + sum(moves)
        else:
            total += sum(move * rate(move, step / m._mechanism.grid, order) for move in moves if move)
    return total + sum(move * rate(move, move, order) for move in trees.values() if move)


def charged(ledger, order):
    """What the rows of a ledger say that its charges lose at an order."""
    with ledger.transaction() as session:
        bodies = [json.loads(row.body) for row in session._pages.rows(None)]
    costs = [cost for body in bodies if body["kind"] == "charge" for cost in costs_of(body, curves=True)]
    return Composition(order=order, curves=True).including(costs).divergence


def no_divergence_is_above_the_charge(one, other, ledger):
    for order in (Fraction(5, 4), Fraction(22), Fraction(300)):
        assert divergence(one, other, order) <= charged(ledger, order) + Fraction(1, 2**60), order


def few(user, page, time):
    return page < 2


def odd(user, page, time):
    return time % 2 == 1


def twice(user, page, time):
    return [(user, page, time), (user, (page + 1) % 3, time + page)]


def step(user, page, time, index):
    return (user, index % 4, time)


def moved(user, page, time):
    return (user, page, time + page)


LINEAR = {
    "filter": lambda c: c.filter(few),
    "map": lambda c: c.map(moved, columns=["user", "page", "time"]),
    "flat_map": lambda c: c.flat_map(twice, columns={"user": str, "page": int, "time": int}, at_most=2),
    "subtract": lambda c: c.subtract(c.filter(odd)),
    "concat": lambda c: c.concat(c.filter(few)),
    "part 0": lambda c: c.partition("page", range(4))[0],
    "part 1": lambda c: c.partition("page", range(4))[1],
    "nobody": lambda c: c.map(lambda page, time: ("ann", page, time), columns=["user", "page", "time"]),
    "part 3": lambda c: c.partition("page", range(4))[3],
    "part 2": lambda c: c.partition("page", range(4))[2],
    "ann": lambda c: c.partition("user", ["ann", "bob"])["ann"],
    "bob": lambda c: c.partition("user", ["ann", "bob"])["bob"],
    "odd": lambda c: c.partition(lambda time: time % 2, [0, 1])[1],
}
MEETING = {
    "shave": lambda c: c.shave().map(step, columns=["user", "page", "time"]),
    "steps": lambda c: c.map(lambda user, page: (user, page, 1), columns=["user", "page", "time"]).shave()
    .map(step, columns=["user", "page", "time"]),
    "distinct": lambda c: c.distinct(),
    "union": lambda c: c.filter(few).union(c.filter(odd)),
    "intersect": lambda c: c.filter(few).intersect(c.filter(odd)),
    "limit": lambda c: c.limit("page"),
    "semijoin": lambda c: c.semijoin(c.filter(odd), on="user"),
}  # fmt: skip
FAMILIES = [
    ["part 0", "part 1", "part 2", "part 3"],
    ["part 0", "part 1", "part 2", "part 3"],
    ["ann", "bob"],
    ["union", "intersect"],
    ["part 1", "odd"],
]
PARTS = [name for name in LINEAR if name[:4] == "part"] + ["ann", "bob", "odd", "union", "intersect"]


def drawn_plan(draw, *, linear=False):
    """A few steps; parts and pairs more often than others, since they are what is tried."""
    names = [*LINEAR] if linear else [*LINEAR, *MEETING]
    often = [name for name in PARTS if name in names]
    return [draw.choice(often if draw.random() < 0.6 else names) for _ in range(draw.randint(1, 3))]


def follow(collection, plan):
    for name in plan:
        collection = {**LINEAR, **MEETING}[name](collection)
    return collection


def drawn_questions(draw, epochs):
    """What is asked before each epoch closes: of it, of windows, and for ever; mostly parts of one collection."""
    base = draw.choice(
        [["nobody", "shave"], ["nobody", "shave"], ["nobody", draw.choice([*MEETING])], drawn_plan(draw)]
    )
    parts = draw.choice(FAMILIES)
    asked = []
    for _ in range(epochs):
        now = []
        for _ in range(draw.choice([1, 1, 2])):
            kind = draw.choice(["epoch", "epoch", "epoch", "windows", "continual"])
            plan = [*base, draw.choice(parts)] if draw.random() < 0.9 else drawn_plan(draw)
            if kind == "continual":
                plan = drawn_plan(draw, linear=True)
            now.append((kind, plan, drawn_plan(draw) if draw.random() < 0.1 else []))
        asked.append(now)
    return asked


def run_live(history, questions, unit, untils, monkeypatch, back=None, **steps):
    """All answers that a live source gives, and what it charged; `back` is what is taken back at each epoch."""
    asked, windowed, changes = QuotedAggregate(), [], {}
    receive = EveryEpoch.receive

    def noted(self, epoch, change):
        changes.setdefault(self.quote.query, []).append(change.copy())
        receive(self, epoch, change)

    monkeypatch.setattr(EveryEpoch, "receive", noted)
    live = wpinq.live(COLUMNS, rho=10**9, unit=unit, secret=ONE, retractions=back is not None, **steps)
    try:
        for records, gone, now, until in zip(history, back or [[]] * len(history), questions, untils, strict=True):
            waiting = []
            for kind, below, above in now:
                plan = follow(live, below)
                if kind == "windows":
                    windowed.append(follow(plan.window(2, at="time"), above).measure(1))
                elif kind == "continual" and not back and not (unit and (unit.per or unit.at_most is None)):
                    plan.measure(1, continual=True)
                else:
                    waiting.append(follow(plan, above).measure(1))
            live.send(records)
            if back:
                live.send(gone, weight=-1)
            live.advance(until=until)
            for one in waiting:
                asked.add(one)
            for one in windowed:
                for number in range(until // 2):
                    asked.add(one.at(2 * number))
        for one, several in changes.items():
            asked.add_changes(one, several)
        asked.ledger = ledger_of(live)
        return asked, asked.ledger.spent()[0]
    finally:
        live.close()


def drawn_history(draw, epochs, unit):
    """Two streams that differ by one unit."""

    def record(user, times):
        return (user, draw.randrange(pages), draw.choice(times))

    pages, times = draw.choice([1, 3]), draw.choice([range(1), range(8)])
    few = draw.choice([(1,), range(3)])
    others = [[record(f"user {draw.random()}", times) for _ in range(draw.choice(few))] for _ in range(epochs)]
    own = [[] for _ in others]
    if unit is None:
        draw.choice(own).append(record("ann", times))
        others[draw.randrange(epochs)].append(record("ann", times))
    else:
        first = 2 * draw.randrange(4)
        for _ in range(draw.randint(1, 6)):
            draw.choice(own).append(record("ann", range(first, first + 2) if unit.period else times))
        if unit.period:
            others[draw.randrange(epochs)].append(("ann", 1, (first + 2) % 8))
    return others, [[*one, *more] for one, more in zip(others, own, strict=True)]


UNITS = {
    "records": None,
    "people": wpinq.users("user", at_most=2),
    "shared": wpinq.users("user", shared=True),
    "per page": wpinq.users("user", at_most=3, per=("page", 1)),
    "a person's window": wpinq.users("user", at_most=2, period=2, at="time"),
}


BEFORE = {
    "where": lambda page, time: page != 1 or time % 3,
    "derive": {"time": lambda time: time // 2 + 3, "page": lambda page: page % 2},
}
"""Steps before the bound, also of the time by which windows are cut."""


def no_loss_is_above_the_charge(seeds, drawn, unit, run):
    """Of two drawn histories, which `run` answers: of what was sent, or of that and of what was taken back."""
    losses = []
    for seed in seeds:
        draw = random.Random(seed)
        epochs = draw.randint(3, 5)
        untils = sorted(draw.randrange(10) for _ in range(epochs))
        questions = drawn_questions(draw, epochs)
        (without, paid), (having, again) = (run(history, questions, untils) for history in drawn(draw, epochs, unit))
        assert paid == again, "what is charged does not depend on records"
        assert loss(without, having) <= paid, (seed, questions)
        no_divergence_is_above_the_charge(without, having, having.ledger)
        losses.append(loss(without, having))
    assert any(losses)


@deeper
@thin(4)
@pytest.mark.parametrize(
    ("unit", "steps"),
    [*((unit, {}) for unit in UNITS.values()), (UNITS["people"], BEFORE), (UNITS["shared"], BEFORE)],
    ids=[*UNITS, "people after steps", "shared after steps"],
)
def test_no_joint_loss_of_random_streams_is_above_the_charge(unit, steps, monkeypatch):
    def run(history, questions, untils):
        return run_live(history, questions, unit, untils, monkeypatch, **steps)

    no_loss_is_above_the_charge(SEEDS[: often(6, 3)], drawn_history, unit, run)


def drawn_returns(draw, epochs, unit):
    """Two streams with records that come and go, which differ by what one unit sent and took back."""

    def sent(user, times):
        return (user, draw.randrange(pages), draw.choice(times))

    def moved(record, times):
        """A record that comes and goes some times, or goes and comes."""
        at = sorted(draw.sample(range(epochs), min(epochs, draw.randint(1, times))))
        first = draw.random() < 0.8
        for place, epoch in enumerate(at):
            (others if record[0] != "ann" else own)[epoch][(place % 2 == 0) != first].append(record)

    pages, times = draw.choice([1, 3]), draw.choice([range(1), range(8)])
    others, own = ([([], []) for _ in range(epochs)] for _ in range(2))
    for _ in range(draw.randint(0, 8)):
        moved(sent(f"user {draw.randrange(3)}", times), 3)
    if unit is None:
        record = sent("ann", times)
        moved(record, 4)
        for number in range(draw.randint(0, 2)):  # equal ones of others
            others[draw.randrange(epochs)][number].append(record)
    else:
        first = 2 * draw.randrange(4)
        for _ in range(draw.randint(1, 6)):
            moved(sent("ann", range(first, first + 2) if unit.period else times), 3)
    return others, [(a + b, c + d) for (a, c), (b, d) in zip(others, own, strict=True)]


@thin(3)
@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_no_joint_loss_is_above_the_charge_where_records_are_taken_back(unit, monkeypatch):
    def run(history, questions, untils):
        sent, gone = zip(*history, strict=True)
        return run_live(sent, questions, unit, untils, monkeypatch, gone)

    no_loss_is_above_the_charge(RETURNS, drawn_returns, unit, run)


def staircase(how, unit, epochs=12):
    """One early record of Alice moves another step of a staircase at each epoch."""

    def run(records):
        live, asked = wpinq.live(COLUMNS, rho=1000, unit=unit, secret=ONE), QuotedAggregate()
        asked.ledger, steps = ledger_of(live), live.map(lambda page: page).shave()
        parts = steps.partition("index", range(2 * epochs))
        windows = steps.window(1, at="index").map(lambda page: page).measure(1) if how == "windows" else None
        live.send(records)
        for epoch in range(1, epochs + 1):
            live.send([(f"user {epoch}", 0, epoch)])
            one = parts[epoch + 1].map(lambda page: page).measure(1) if how == "parts" else None
            live.advance(until=epoch + 2)
            asked.add(windows.at(epoch + 1) if windows else one)
        paid = ledger_of(live).spent()[0]
        live.close()
        return asked, paid

    (without, paid), (having, _) = run([]), run([("ann", 0, 0)])
    no_divergence_is_above_the_charge(without, having, having.ledger)
    return loss(without, having), paid


@thin(2)
@pytest.mark.parametrize("unit", [None, wpinq.users("user", at_most=1)], ids=str)
@pytest.mark.parametrize("how", ["parts", "windows"])
def test_steps_that_one_early_record_moves_at_every_epoch_are_added_up(how, unit):
    """It was a loss of 12 for a charge of 1, and without a bound as epochs go on."""
    assert staircase(how, unit) == (12, 12)


def test_a_pair_at_two_epochs_is_two_pairs():
    """Alice's record is the larger weight of two at first, and with Bob's the smaller one at the second epoch."""

    def run(records):
        live, asked = wpinq.live(COLUMNS, budget=1000, secret=ONE), QuotedAggregate()
        left, right = live.map("page"), live.map("time")
        for sent, pair in ((records, left.union(right)), ([("bob", 7, 5)], left.intersect(right))):
            found = pair.measure(1)
            live.send(sent)
            live.advance()
            asked.add(found)
        paid = ledger_of(live).spent()[0]
        live.close()
        return asked, paid

    (without, paid), (having, _) = run([]), run([("ann", 5, 7)])
    assert loss(without, having) == paid == 2


def test_linear_parts_cost_one_over_all_epochs():
    """A record is in the same part at every epoch."""
    live = wpinq.live(COLUMNS, budget=1, secret=ONE)
    for part in live.filter(few).map("page, time").partition("page", range(3)).values():
        part.measure(1)
        live.advance()
    assert ledger_of(live).spent()[0] == 1
    live.close()


@pytest.mark.parametrize("unit", [None, wpinq.users("user", at_most=2)], ids=str)
def test_versions_of_a_file_are_added_up(unit, tmp_path):
    """A record, or a person, of version 1 is in version 2 too, changed so that it is in another part there."""

    def run(name, *versions):
        read = [
            wpinq.protect(
                records, rho=1000, unit=unit, columns=COLUMNS, secret=ONE, name="file", version=str(number),
                ledger=tmp_path / name,
            )
            for number, records in enumerate(versions)
        ]  # fmt: skip
        asked, parts = QuotedAggregate(), [one.partition("page", [0, 1]) for one in (*read, read[0].concat(read[1]))]
        pairs = [(a.map("page"), b.map("page")) for a, b in [(read[0], read[1]), (read[1], read[0])]]
        for one in (
            parts[0][0], parts[1][1], parts[2][0], parts[2][1], pairs[0][0].union(pairs[0][1]),
            pairs[1][0].intersect(pairs[1][1]),
        ):  # fmt: skip
            asked.add(one.measure(1))
        asked.ledger = ledger_of(read[0])
        return asked, asked.ledger.spent()[0]

    bob, ann = [("bob", 1, 0)], [("ann", 0, 0)]
    without, paid = run("without", bob, bob)
    having, again = run("having", bob + ann, [*bob, ("ann", 1, 0)])
    assert paid == again == 1 + 1 + 2 + 2
    assert 0 < loss(without, having) <= paid
    no_divergence_is_above_the_charge(without, having, having.ledger)
    if unit is None:
        assert loss(without, having) == 1 + 1 + 1 + 1 + 2, "of the pair both move by two, and share one price"
