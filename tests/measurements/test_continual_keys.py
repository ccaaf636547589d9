"""Continual selection: which bins pass, at which epochs, what it costs, and what it is refused for."""

import math
import random
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import wpinq
from wpinq.core.measurements import continual_selection
from wpinq.core.measurements.continual_selection import PassingEpochs
from wpinq.core.measurements.epoch_noise import TreeNoise
from wpinq.core.noise.counting_tree import parts, segment
from wpinq.core.noise.tails import lasting_threshold, log_moments, share_at
from wpinq.core.noise.threshold import least_threshold
from wpinq.core.records.bins import bin_frame
from wpinq.core.records.identity import identities
from wpinq.core.runs.prefix_sums import Changes

TYPED = {"user": "text", "page": "text"}
EXACT = 500  # no node has noise before epoch 160, but for a probability of e^-125
SECRET = wpinq.Secret.fresh()


@pytest.fixture
def views():
    source = wpinq.live(TYPED, budget=10**6, delta="1/2")
    yield source
    source.close()


def pages(source, **more):
    return source.map("page").select(more.pop("epsilon", EXACT), continual=True, **more)


def scales_at(epoch):
    return [float(1 / segment(node.segment).shares[node.level]) for node in parts(epoch)]


def test_the_looks_of_all_epochs_there_will_ever_be_cost_delta():
    spent, last = Fraction(0), 3**8 - 1
    for epoch in range(1, last + 1):
        spent += share_at(epoch)
    assert spent == 1 - Fraction(1, 9), "segments 8 and on have 1/9 left: 1/90 + 1/110 + ..."
    looked = [epoch for epoch in range(1, last + 1) if share_at(epoch)]
    assert all(after - one <= max(1, (one + 1) / 243) for one, after in pairwise(looked))


def law(scales):
    """The probabilities of a sum of discrete Laplace noises, and its values."""
    size, result = 1 << 14, 1.0
    angle = 2 * np.pi * np.arange(size) / size
    for scale in scales:
        r = math.exp(-1 / scale)
        result = result * (1 - r) ** 2 / (1 - 2 * r * np.cos(angle) + r * r)
    return np.fft.fftshift(np.fft.ifft(result).real), np.arange(size) - size // 2


@pytest.mark.parametrize(("l1", "linf"), [(1, 1), (20, 20), (20, 3), (7, 2)])
@pytest.mark.parametrize("epoch", [1, 2, 7, 100, 728, 3**9 - 1])
def test_a_threshold_holds_for_every_way_to_spread_a_unit(epoch, l1, linf):
    """Against the exact law: all bins alike, one large and the others small, and all that is in between."""
    scales = [l1 * scale for scale in scales_at(epoch)]
    probability, value = law(scales)
    for chance, least in ((Fraction(1, 10**6), 1), (Fraction(1, 100), 5)):
        tau = lasting_threshold(scales, 1, l1, linf, chance=chance, least=least)
        passes = [probability[value >= tau - (least - 1) - weight].sum() for weight in range(linf + 1)]
        for large in range(1, linf + 1):
            for many in range(1, l1 // large + 1):
                rest = l1 - many * large
                for ways in ([1] * rest, [rest] if 0 < rest <= linf else [1] * rest):
                    seen = many * passes[large] + sum(passes[weight] for weight in ways)
                    assert seen <= chance + 1e-12, (large, many, ways)


@pytest.mark.parametrize("epoch", [1, 2, 7, 100, 728])
def test_a_threshold_is_rounded_up(epoch):
    """No x of those that are tried proves a threshold that is lower by a step, and one of them proves it."""
    scales, chance = scales_at(epoch), Fraction(1, 10**6)
    x, moments = log_moments(scales)
    tau = lasting_threshold(scales, 1, 1, 1, chance=chance)
    proves = [(moments + x - x * at <= math.log(chance) + 1e-9).any() for at in (tau - 1, tau)]
    assert proves == [False, True]


def test_at_the_same_price_it_errs_sixteen_times_less_than_a_release_every_day():
    """Over 365 days at epsilon 1 and delta 1e-6: standard deviation and threshold of a repetition that is told the
    number of days, 1/365 of both each day, against those of all days here; a repetition with Gaussian noise and the
    best accounting, rho = 0.0175 in all, errs by 102."""
    days, delta = 365, Fraction(1, 10**6)
    daily = math.sqrt(2) * days
    mine = [math.sqrt(sum(2 * scale**2 for scale in scales_at(day))) for day in range(1, days + 1)]
    assert np.mean(mine) < daily / 40
    assert 102 / np.mean(mine) > 8
    tau = max(lasting_threshold(scales_at(day), 1, 1, 1, chance=delta * share_at(day)) for day in range(1, days + 1))
    assert tau < least_threshold(Fraction(days), 1, 1, delta / days) / 30


def test_bins_are_published_from_the_epoch_on_at_which_they_pass_and_counted_at_each(views):
    keys = pages(views, delta="1e-6")
    sent = [["a"] * 3, ["b"] * 2 + ["a"], ["c", "b"], [], ["c"] * 9]
    for epoch, some in enumerate(sent, 1):
        views.send([("ann", page) for page in some])
        views.advance()
        assert keys.times.threshold(epoch) <= 3
    found = {epoch: dict(keys.release(epoch).frame.select("page", "count").rows()) for epoch in range(1, 6)}
    assert found[3]["a"] == 4 and found[3]["b"] == 3
    assert found[5] == {"c": 10, "a": 4, "b": 3} == dict(keys.release().frame.select("page", "count").rows())
    assert list(found[1]) == ["a"], "and not what passed later"
    assert keys.bins["page"].to_list() == ["a", "b", "c"]
    answer = keys.release()
    assert answer.frame["low"][0] <= 10 <= answer.frame["high"][0]
    assert answer.about["cost"] == {"epsilon": EXACT, "delta": 1e-6} and answer.about["threshold"] >= 1
    assert views._data.ledger.spent() == (EXACT, Fraction(1, 10**6)), "once, for all epochs"
    assert "delta 0.000001" in repr(keys)
    assert "delta=0.000001, continual=True" in keys.explain() and "pays delta 0.000001" in keys.explain()


def test_a_loop_over_answers_gives_what_is_published(views, tmp_path):
    keys, total = pages(views), views.map("page").measure(EXACT, continual=True)
    asked = {"keys": keys, "total": total}
    with pytest.raises(wpinq.PlanError, match="those it published"):
        views.answers(asked, bins={"keys": ["home"]})
    told = []
    with views.answers(asked, bins=["news"], to=f"json:{tmp_path / 'out'}") as answers:
        for page in ("home", "news"):
            views.send([("ann", page)] * 9)
            views.advance()
            told += [(one["epoch"], one["measurement"], one["bin"], one["value"]) for one in answers]
    assert sorted(told) == [(1, "keys", "home", 9), (1, "total", "news", 0), (2, "keys", "home", 9),
                            (2, "keys", "news", 9), (2, "total", "news", 9)]  # fmt: skip
    assert len((tmp_path / "out").read_text().splitlines()) == 5


def test_whoever_asks_changes_nothing_that_an_epoch_adds_to(views, monkeypatch):
    """Two threads that added up the same change, each once, or dropped what the other one added, would count a bin
    twice, under the noise of one."""
    keys, told, append = pages(views), [], Changes.append

    def checked(self, change):
        told.append(change._coming)
        append(self, change)

    monkeypatch.setattr(Changes, "append", checked)
    for page in "abcdefg":
        views.send([("ann", page)] * 9)
        views.advance()
    before = keys.times._since._runs
    assert len(before) > 1 and keys.release().frame["count"].to_list() == [9] * 7
    assert keys.times._since._runs is before and set(told) == {None}


def test_bins_are_looked_at_where_they_did_not_change(views, monkeypatch):
    """One view more of a bin that others are in would else be one look more, which no noise hides."""
    looked = {}

    def noise(self, epoch, ids):
        looked[epoch] = len(ids)
        return np.full(len(ids), 10**6 if epoch == 6 else 0)

    keys = pages(views, epsilon="1/100", delta="1e-6")
    monkeypatch.setattr(TreeNoise, "draw", noise)
    views.send([("ann", "home"), ("bob", "home")])
    for _ in range(5):
        views.advance()
    views.advance()
    assert looked == dict.fromkeys(range(1, 7), 1)
    assert keys.bins["page"].to_list() == ["home"]


def test_bins_of_less_than_at_least_are_never_looked_at(views, monkeypatch):
    monkeypatch.setattr(TreeNoise, "draw", lambda self, epoch, ids: np.full(len(ids), 10**6))
    all_, ten = pages(views, epsilon=1), pages(views, epsilon=1, at_least=10)
    views.send([("ann", "few")] * 9 + [("ann", "many")] * 10)
    views.advance()
    assert all_.bins["page"].to_list() == ["few", "many"]
    assert ten.bins["page"].to_list() == ["many"]
    assert ten.times.threshold(1) == all_.times.threshold(1) + 9


TAU, PAGES, SENT = 5, "abcd", 7


def outcomes(history, other, unchanged, monkeypatch):
    """What is published at each epoch of a stream, where the noisy weights are those of both streams.

    That is the coupling of the proof: the noise of this stream is that of the other one and the difference of weights.
    """
    source = wpinq.live({"page": "text"}, budget=1, secret=SECRET)
    ids = identities(bin_frame(list(PAGES), source._node.schema), source._node.schema, source._data.identity_key)
    places = {one.tobytes(): place for place, one in enumerate(ids)}

    def noise(self, epoch, asked):
        found = []
        for one in asked:
            page = PAGES[places[np.ascontiguousarray(one).tobytes()]]
            shift = sum(one.count(page) for one in other[:epoch]) - sum(one.count(page) for one in history[:epoch])
            found.append(random.Random(f"{epoch} {page}").randint(-5, 3) + max(shift, 0))
            if unchanged is not None and page not in history[epoch - 1]:
                found[-1] = unchanged
        return np.array(found, np.int64)

    monkeypatch.setattr(TreeNoise, "draw", noise)
    monkeypatch.setattr(PassingEpochs, "threshold", lambda self, epoch: TAU)
    keys, said = source.select(1, continual=True), []
    for some in history:
        source.send([(page,) for page in some])
        source.advance()
        said.append(keys.release().rows)
    source.close()
    return said


def passes_alone(less, more):
    """Whether a bin passes at an epoch at which it is looked at in one stream only: the event that delta pays for."""
    for epoch in range(1, SENT + 1):
        counted = Counter(page for some in more[:epoch] for page in some)
        for page in set(counted) - {page for some in less[:epoch] for page in some}:
            if counted[page] + random.Random(f"{epoch} {page}").randint(-5, 3) >= TAU:
                return True
    return False


@pytest.mark.parametrize("unchanged", [None, -(10**6)])
def test_outside_of_that_event_one_record_more_changes_nothing_but_noise(unchanged, monkeypatch):
    """Neighbours under one coupling give the same tables at all epochs. If bins were looked at only where they changed
    (planted: noise that nothing passes elsewhere), they would not."""
    draw, same, tried = random.Random(1), 0, 0
    while tried < 12:
        less = [draw.choices(PAGES, k=draw.choice([0, 0, 1, 2])) for _ in range(SENT)]
        more = [list(some) for some in less]
        more[draw.randrange(SENT)].append(draw.choice(PAGES))
        if not passes_alone(less, more):
            tried += 1
            one = outcomes(more, more, unchanged, monkeypatch)
            same += one == outcomes(less, more, unchanged, monkeypatch)
    assert same == tried if unchanged is None else same < tried


def lone(shares, delta, monkeypatch):
    """How many of 2,000 people whose bin nobody else is in are seen in it over 80 epochs."""
    source = wpinq.live(TYPED, budget=1, delta="1/2", secret=SECRET)
    if shares is not None:
        monkeypatch.setattr(continual_selection, "share_at", shares)
    keys = pages(source, epsilon=1, delta=delta, name=f"{shares}")
    source.send([(f"user {i}", f"page {i}") for i in range(2000)])
    for _ in range(80):
        source.advance()
    seen = keys.times.published(80)
    source.close()
    return len(seen) / 2000


def test_who_is_alone_in_a_bin_is_seen_with_probability_delta_over_all_epochs(monkeypatch):
    """As the bound is not tight, fewer are. Where each look costs all of delta, 80 looks cost more, which is caught.
    2,000 bins: of a probability of 1/4, 600 or more come by chance with one below 1e-6."""
    assert 0 < lone(None, Fraction(1, 4), monkeypatch) < 0.3
    assert lone(lambda _: Fraction(1), Fraction(1, 4), monkeypatch) > 0.3


def test_a_restart_and_a_second_look_say_the_same(tmp_path):
    def start():
        source = wpinq.live(TYPED, budget=1, ledger=tmp_path / "ledger", recover=tmp_path / "keep")
        return source, pages(source, epsilon=1, delta="1e-6")

    views, keys = start()
    said = {}
    for epoch in range(1, 9):
        views.send([("ann", f"page {i % 5}") for i in range(40 * epoch)])
        views.advance()
        said[epoch] = keys.release().frame.rows()
    assert said[8] and len(said[8]) > len(said[1])
    spent = views._data.ledger.spent()
    views.close()
    views, keys = start()
    assert views.resume() == 8
    assert {epoch: keys.release(epoch).frame.rows() for epoch in said} == said
    assert views._data.ledger.spent() == spent
    views.close()


def test_names_are_found_in_whatever_epoch_they_came(views):
    """Also of people, of whom the first records are kept, and behind steps that share weights or read two inputs."""
    halves = views.flat_map(lambda user, page: [page, user]).select(EXACT, continual=True)
    both = views.map("page").concat(views.map("user")).select(EXACT, continual=True)
    for epoch in range(1, 20):
        views.send([("ann", f"page {epoch}")] * (4 if epoch % 3 else 1))
        views.advance()
    wanted = sorted([f"page {n}" for n in range(1, 20) if n % 3] + ["ann"])
    assert set(wanted) <= set(halves.bins.to_series().to_list()) | set(both.bins.to_series().to_list())
    assert set(both.bins.to_series()) >= set(wanted)
    assert halves.release().frame.columns[1] == "weighted_sum"


def test_of_people_the_first_records_count():
    source = wpinq.live(TYPED, budget=10**6, unit=wpinq.users("user", at_most=2))
    keys = pages(source, epsilon=2 * EXACT)
    for epoch in range(4):
        source.send([(f"user {i}", f"page {epoch}") for i in range(8)])
        source.advance()
    assert dict(keys.release().frame.select("page", "count").rows()) == {"page 0": 8, "page 1": 8}
    source.close()


def subtracted(source):
    return source.subtract(source.filter("page = 'a'"))


REFUSED = {
    "a finite source": lambda: wpinq.protect([], budget=1, columns=TYPED),
    "linear for each record": lambda: wpinq.live(TYPED, budget=1).distinct(),
    "do not subtract": lambda: subtracted(wpinq.live(TYPED, budget=1)),
    "leave live\\(keep=": lambda: wpinq.live(TYPED, budget=1, keep=3),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_it_cannot_be_is_refused_and_nothing_is_charged(why):
    source = REFUSED[why]()
    with pytest.raises(wpinq.PlanError, match=why):
        source.select(1, continual=True)
    with pytest.raises(wpinq.PlanError, match="at_least"):
        wpinq.live(TYPED, budget=1).select(1, continual=True, at_least="1/2")
    with pytest.raises(wpinq.PlanError, match="at_least"):
        source.select(1, at_least=2)


def test_no_bin_is_observed_by_its_name(views):
    keys = pages(views)
    views.advance()
    for ask in (lambda: keys.observe("home"), lambda: keys.observe_many(["home"])):
        with pytest.raises(wpinq.PlanError, match="none is observed by its name"):
            ask()
    with pytest.raises(wpinq.NotReadyError):
        keys.release(2)
    assert isinstance(keys.bins, pl.DataFrame) and not keys.release().rows
