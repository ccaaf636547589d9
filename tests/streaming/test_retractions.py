"""Records that are taken back: every step against its definition at every epoch, restarts, and what is refused."""

import json
import sys
from fractions import Fraction
from pathlib import Path

import processes
import pytest
from depth import often
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import same

import wpinq
from wpinq.core.engines import reference
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.plan.node import Source, steps
from wpinq.core.pricing.sensitivity import unit_sensitivities
from wpinq.testing import distance

TYPED = {"user": "text", "page": "text", "size": "float"}
EXACT = 10**5
UNITS = {
    "record": None,
    "people": wpinq.users("user", at_most=2),
    "per page": wpinq.users("user", at_most=3, per=("page", 1)),
    "shared": wpinq.users("user", shared=True),
}
row = st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from([0.0, -0.0, 1.5]))
events = st.lists(st.tuples(row, st.sampled_from([1, 1, -1])), max_size=6)
streams = st.lists(events, min_size=1, max_size=3)


def plans(views, unit):
    """Every kind of step, and of state."""
    pages = views.map("page")
    some = views.filter(lambda user: user != "a")
    limited = views.limit("page", 2)
    found = [
        pages, views, pages.shave().map("index"), pages.distinct(), views.shave(2), pages.union(some.map("page")),
        pages.intersect(some.map("page")), pages.subtract(some.map("page")), views.group_by("user", len),
        views.group_by("page"), views.join(some, on="page").map("user"), views.semijoin(some, on="page"),
        views.antijoin(some, on="page"), limited, views.flat_map(lambda page, size: [page, "q"], columns={"p": str}),
        views.partition("page", ["x", "y"])["x"], limited.join_rows(limited, on="page").map("user"),
    ]  # fmt: skip
    if unit is None or unit.at_most:
        found.append(views.group_by("user", len, whole=True))
    return found


def sent(views, epoch):
    for weight in (1, -1):
        views.send([one for one, own in epoch if own == weight], weight=weight)


def added(stream):
    """What the epochs of a stream add up to; the two zeros are one value."""
    total = {}
    for epoch in stream:
        for (user, page, size), weight in epoch:
            record = (user, page, size + 0.0)
            total[record] = total.get(record, Fraction(0)) + weight
    return {record: weight for record, weight in total.items() if weight}


def defined(root, total):
    """What the reference engine makes of a source that holds this."""
    return reference.run(root, {node: total for node in steps(root) if isinstance(node, Source)})


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
@settings(max_examples=often(6, 3))
@given(stream=streams)
def test_every_step_is_at_every_epoch_what_its_definition_makes_of_what_is_there(unit, stream):
    views = wpinq.live(TYPED, budget=10**9, unit=unit, retractions=True)
    asked = [one.measure(1) for one in plans(views, unit)[::2]]
    for number, epoch in enumerate(stream, start=1):
        if number == len(stream):  # these begin with all earlier epochs at once
            asked += [one.measure(1) for one in plans(views, unit)[1::2]]
        sent(views, epoch)
        views.advance()
        total = added(stream[:number])
        for kept in views._running._plans.values():
            wanted = {record: weight for record, weight in defined(kept.root, total).items() if weight}
            assert same(kept.total, kept.root, wanted), kept.root.title
    assert len(views._running._plans) == len(asked)
    views.close()


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
@settings(max_examples=often(6))
@given(data=st.data(), others=streams)
def test_a_history_moves_each_epoch_by_no_more_than_the_plan_says(unit, data, others):
    """Neighbours: one record that comes and goes as often as it likes, or all that a person sent and took back."""
    if unit is None:
        record, back = data.draw(row), data.draw(st.booleans())
        turns = [data.draw(st.booleans()) for _ in others]
        own, there = [], False
        for turn in turns:
            own.append([(record, 1 if there == back else -1)] if turn else [])
            there ^= turn
    else:
        others = [[(one, weight) for one, weight in epoch if one[0] != "a"] for epoch in others]
        own = [[(("a", *one[1:]), weight) for one, weight in data.draw(events)] for _ in others]
    both = [one + more for one, more in zip(others, own, strict=True)]
    views = wpinq.live(TYPED, budget=10**9, unit=unit, retractions=True)
    for plan in plans(views, unit):
        root = fit_noise(plan._node)
        (most,) = unit_sensitivities(root)
        for number in range(1, len(others) + 1):
            one, other = (defined(root, added(stream[:number])) for stream in (others, both))
            assert distance(one, other) * root.resolution <= most.l1, root.title
            moves = [abs(one.get(x, 0) - other.get(x, 0)) * root.resolution for x in {**one, **other}]
            assert max(moves, default=0) <= most.linf, root.title
    views.close()


def test_what_is_taken_back_is_counted_in_the_window_that_its_record_is_in_unless_that_has_closed():
    with_people = wpinq.users("user", at_most=5, period=10, at="time")
    for unit in (None, with_people):
        views = wpinq.live({"user": "text", "time": "integer"}, budget=10**9, unit=unit, retractions=True)
        windows = views.window(10, at="time").map("user").measure(EXACT)
        views.send([("ann", 1), ("ann", 2), ("bob", 3), ("bob", 15), ("eve", 15)])
        views.advance(until=0)
        views.send([("ann", 2), ("bob", 15)], weight=-1)  # in the windows of 0 and 10
        views.advance(until=10)
        assert windows.observe_many(["ann", "bob", "eve"], window=0).tolist() == [1, 1, 0]
        views.send([("bob", 3), ("eve", 15)], weight=-1)  # that of 0 has closed
        views.advance(until=20)
        assert windows.observe_many(["ann", "bob", "eve"], window=0).tolist() == [1, 1, 0]
        assert windows.observe_many(["ann", "bob", "eve"], window=10).tolist() == [0, 0, 0]
        views.close()


def test_a_bin_of_which_all_was_taken_back_is_no_bin():
    views = wpinq.live({"page": "text"}, budget=10**9, delta="0.1", retractions=True)
    views.send([("a",)] * 50 + [("b",)] * 50)
    views.advance()
    pages = views.measure(EXACT)
    names = views.select(60, delta="1e-3")
    views.send([("b",)] * 50 + [("c",)] * 9, weight=-1)
    views.advance()
    assert pages.release(delta="1e-3").rows == (("a", 50),)
    assert names.bins["page"].to_list() == ["a"]
    assert (views._log.records, int(views._log._epochs[1].frame["\0weight"].sum())) == (159, -59), "as many are counted"
    views.close()


def test_what_counts_a_record_at_one_epoch_alone_is_refused_before_it_is_charged():
    for unit in (None, wpinq.users("user", at_most=2)):
        views = wpinq.live({"user": "text", "page": "text"}, budget=1, delta="1e-6", unit=unit, retractions=True)
        with pytest.raises(wpinq.PlanError, match="can be taken back, so one would be in two epochs"):
            views.map("page").measure("0.5", continual=True)
        with pytest.raises(wpinq.PlanError, match="taken back"):
            views.map("page").select("0.5", delta="1e-7", continual=True)
        with pytest.raises(wpinq.PlanError, match="taken back"):
            views.map("page").quote("0.5", continual=True)
        assert views.budget.spent == 0
        views.close()


def test_weights_are_one_or_minus_one_and_records_are_taken_back_where_that_was_declared():
    views = wpinq.live({"page": "text"}, budget=1, retractions=True)
    for weight in (0, 2, -2, True, 1.0, "1", None, Fraction(-1), 10**30):
        with pytest.raises(wpinq.PlanError, match=r"send\(weight=.*send records as often as they count"):
            views.send([("a",)], weight=weight)
    views.close()
    with pytest.raises(wpinq.PlanError, match=r"send\(weight=-1\): this source takes no record back"):
        wpinq.live({"page": "text"}, budget=1).send([("a",)], weight=-1)


def test_a_directory_is_of_a_source_that_takes_records_back_or_of_one_that_does_not(tmp_path):
    """Each has a key of its own, so that nobody takes weights below zero for records."""

    def opened(**more):
        wpinq.live({"page": "text"}, budget=1, ledger=tmp_path / "ledger", recover=tmp_path / "keep", **more).close()

    opened(retractions=True)
    with pytest.raises(wpinq.SourceError, match="retractions"):
        opened()
    opened(retractions=True)


CHILD = """
import json, os, random, signal, sys, time
import polars, cryptography
import wpinq, wpinq.core.measurements.measure
try:
    import wpinq.core.engines.bytewax.live
except ImportError:  # of this Python there is none
    pass
home, wanted, draw = sys.argv[1], int(sys.argv[2]), random.Random(5)

def run(out, more):
    place = {"ledger": home + "/ledger", "recover": home + "/keep"}
    views = wpinq.live({"page": "text"}, budget=10**9, retractions=True, **place)
    begun = views.resume()
    for epoch in range(begun + 1, begun + 1 + more):
        exact, noisy = (views.measure(epsilon, name=f"{epoch} {epsilon}") for epsilon in (10**5, 1))
        views.send([(str(epoch % 3),), ("b",)])
        views.send([(str(number),) for number in range(epoch % 4)], weight=-1)
        views.advance()
        line = [epoch, exact.observe_many(list("012b")).tolist(), noisy.observe_many(list("012b")).tolist()]
        os.write(out, (json.dumps(line) + "\\n").encode())

for number in range(wanted + 1):
    out = os.open(home + "/out", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    child = os.fork()
    if not child:
        run(out, 10**6 if number < wanted else 10)  # what is to be killed does not end by itself
        os._exit(0)
    if number < wanted:
        time.sleep(0.05 + 0.4 * draw.random())
        os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == (signal.SIGKILL if number < wanted else 0)
"""


def test_killed_at_any_moment_what_was_taken_back_stays_so(tmp_path):
    kills = 5
    words = [sys.executable, "-W", "ignore", "-c", CHILD, str(tmp_path), str(kills)]
    processes.run(words, check=True, timeout=200, cwd=Path(wpinq.__file__).parents[1])
    said = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    last = max(epoch for epoch, *_ in said)
    assert len({epoch for epoch, *_ in said}) >= last - kills, "what was closed and not said is said no more"
    total = dict.fromkeys("012b", 0)
    for epoch in range(1, last + 1):
        for page, weight in [(str(epoch % 3), 1), ("b", 1), *((str(one), -1) for one in range(min(epoch % 4, 3)))]:
            total[page] += weight
        found = [one for number, *one in said if number == epoch]
        assert all(exact == [*total.values()] for exact, _ in found)
        assert len({str(noisy) for _, noisy in found}) <= 1
    assert last >= 10
