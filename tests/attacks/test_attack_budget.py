"""Attacks on the budget: floats, orders, uses, functions that spend.

Attacks 7, 16 to 21; rules 5, 24, 25, 28, 32, 35 to 37.
"""

import random
import subprocess
import sys
import threading
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from default_engine import flow

import wpinq
from wpinq.core.engines import local
from wpinq.core.ledger import Ledger
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.noise import Words
from wpinq.core.plan.stability import Survey


def page(user, page):
    return page


def memory(budget=1, records=(("ann", "home"), ("bob", "news")), **changes):
    return wpinq.protect(list(records), budget=budget, columns=("user", "page"), **changes)


def test_attack_07_amounts_are_exact_end_to_end(spent):
    """Floats are the decimals that they print; tiny spends add up; 0.1 + 0.2 fills 0.3 and nothing more fits."""
    views = memory(0.3)
    m = views.measure(0.1)
    views.map(page).measure(np.float64(0.2))
    assert spent(m) == Fraction(3, 10)
    with pytest.raises(wpinq.BudgetError):
        views.map(page).measure("1e-15", name="more")
    views = memory("0.1")
    for i in range(100):
        m = views.measure(Decimal("0.001"), name=str(i))
    assert spent(m) == Fraction(1, 10), "a hundred times 0.001 is 0.09999999999999999 or 0.10000000000000007 in floats"


def test_attack_16_a_failure_refunds_nothing_and_can_be_tried_again(views_file, spent, monkeypatch):
    views = wpinq.protect(views_file, budget="0.1")
    m = views.map(page).measure("0.1")
    true = local.run

    def broken(job, **how):
        raise MemoryError

    monkeypatch.setattr(local, "run", broken)
    with pytest.raises(BaseException):  # noqa: B017
        m.observe("home")
    assert spent(views_file) == Fraction(1, 10)
    with pytest.raises(wpinq.BudgetError):
        views.filter(lambda page: page == "home").measure("0.1")
    monkeypatch.setattr(local, "run", true)
    first = m.observe("home")
    assert wpinq.protect(views_file).map(page).measure("0.1").observe("home") == first
    assert spent(views_file) == Fraction(1, 10)


def test_attack_16_nothing_is_computed_before_it_is_charged(monkeypatch):
    """The charge is made by `measure`; a refused one has read nothing."""
    views = memory("0.1")
    runs = []
    monkeypatch.setattr(flow, "run", runs.append)
    with pytest.raises(wpinq.BudgetError):
        views.measure("0.2")
    assert runs == []


def test_attack_17_functions_cannot_spend_the_budget(spent):
    """A charge made where alice's record is seen would tell that it is there, exactly, by what is left."""
    views = memory(1, [("alice", "x"), ("bob", "y")])
    tried = SimpleNamespace(times=0)  # lists are copied when a function is bound

    def spend(user):
        if user == "alice":
            tried.times += 1
            views.measure("0.5", name="stolen")
        return user

    m = views.map(spend).measure("0.1")
    done = []
    thread = threading.Thread(target=lambda: done.append(m.observe("bob")), daemon=True)
    thread.start()
    thread.join(20)
    assert tried.times, "the function did run"
    assert done, "and it may not lock up the run either"
    assert spent(m) == Fraction(1, 10)


@pytest.mark.parametrize("inside", ["observe", "protect", "measure"])
def test_attack_17_functions_cannot_ask_anything(inside, tmp_path):
    """Whatever a function asks drops its record; no session is opened where a record is seen."""
    views = memory(10**6, [("alice", "x"), ("bob", "y")])
    other = views.map(page).measure(1)
    asks = {
        "observe": lambda: other.observe("x"),
        "measure": lambda: views.measure(1, name="inner"),
        "protect": lambda: wpinq.protect([("a", "b")], budget=1, ledger=tmp_path / "made", columns=("user", "page")),
    }

    def nosy(user):
        asks[inside]()
        return user

    assert views.map(nosy).measure(1000).observe_many(["alice", "bob"]).tolist() == [0, 0]
    assert list(tmp_path.iterdir()) == []


def diamonds(views):
    one = views.map(page)
    return {
        "one": (one, 1),
        "with itself": (one.concat(one), 2),
        "less itself": (one.subtract(one), 2),
        "by two ways": (
            one.filter(lambda page: page != "x").concat(views.map(page).filter(lambda page: page == "x")),
            2,
        ),
        "three": (one.concat(one).concat(one), 3),
        "shaved": (one.concat(one).shave().map(lambda page, index: index), 2),
    }


@pytest.mark.parametrize("name", ["one", "with itself", "less itself", "by two ways", "three", "shaved"])
def test_attack_18_every_use_of_a_source_is_paid(name, spent):
    views = memory(10)
    collection, uses = diamonds(views)[name]
    m = collection.measure("0.3")
    assert m.scale == uses / Fraction(3, 10)
    assert spent(m) == Fraction(3, 10)


def test_attack_19_overlapping_filters_are_summed(spent):
    """No predicate makes parts: only `partition` would, and it gives each record to one part."""
    views = memory(10)
    for user in ("ann", "bob", "cid"):
        m = views.filter(lambda user, user_=user: user == user_).measure("0.1")
    assert spent(m) == Fraction(3, 10)
    views.filter(lambda user: user != "ann").measure("0.1")
    assert spent(m) == Fraction(4, 10)


def test_attack_21_adaptively_chosen_amounts_never_pass_the_budget(spent):
    """Amounts that depend on answers and on what is left, of many sizes, summed by us in fractions."""
    generator = random.Random(21)
    views = memory(1)
    granted, m = Fraction(0), None
    for i in range(60):
        epsilon = Fraction(generator.randint(1, 1000), generator.randint(1, 10 ** generator.randint(1, 9)))
        if generator.random() < 0.3:
            epsilon = 1 - granted
        if epsilon == 0:
            break
        try:
            m = views.measure(epsilon, name=str(i))
            granted += epsilon
        except wpinq.BudgetError as refused:
            assert epsilon > 1 - granted
            assert refused.remaining == 1 - granted
        except wpinq.PlanError:
            pass  # a scale beyond the sampler's, refused before it is charged
    assert spent(m) == granted <= 1


def test_rule_24_epsilon_is_what_it_costs(spent):
    """scale = max_i(k_i U_i) / epsilon, and source i is charged k_i U_i / scale: paths count in one place only.

    A triangle count by intersection reaches its source three times: at epsilon 0.3 its scale is 10.
    """
    views = memory(10)
    pages = views.map(page)
    m = pages.concat(pages).concat(pages).measure("0.3")
    assert (m.scale, spent(m)) == (10, Fraction(3, 10))
    other = memory(10, name="other")
    both = pages.concat(pages).concat(other.map(page)).measure("0.3")
    assert both.scale == Fraction(20, 3)
    assert spent(both) == Fraction(3, 10) + Fraction(3, 10), "0.3 before, and 2 uses / (20/3)"
    assert other._node.data.ledger.spent()[0] == Fraction(3, 20), "the source that is used once pays half"


def test_rule_28_versions_share_one_budget_and_units_do_not_change(views_file, spent):
    for number in range(3):
        wpinq.protect(views_file, budget="0.3", version=str(number)).map(page).measure("0.1").observe("home")
    with pytest.raises(wpinq.BudgetError):
        wpinq.protect(views_file, budget="0.3", version="3").map(page).measure("0.1")
    assert spent(views_file) == Fraction(3, 10)
    with pytest.raises(wpinq.LedgerError, match="unit"):
        wpinq.protect(views_file, budget="0.3", unit=wpinq.users("user", at_most=2))
    with pytest.raises(wpinq.LedgerError, match="budget"):
        wpinq.protect(views_file, budget="0.4")


@pytest.mark.parametrize(
    ("epsilon", "thickness"), [("1e-6", 1), (1, 1), (1000, 1), ("1e-6", "1/1000000"), (1, "1/1000000")]
)
def test_rule_32_scales_in_resolution_units_are_drawn_or_refused_before_the_charge(epsilon, thickness, spent):
    m = memory(10**6).map(page).shave(thickness).map(lambda page: page).measure(epsilon)
    values = m.observe_many([f"b{i}" for i in range(2000)])
    x = 1 / float(m.scale * m.node.resolution)
    expected = 1 / np.sinh(min(x, 700)) / m.node.resolution  # the mean of |N|, 2r / (1 - r^2); of 2,000 within 6 sigma
    assert abs(np.abs(values).mean() - expected) <= 0.15 * expected + 1e-9


def test_rule_32_a_scale_beyond_the_sampler_costs_nothing(spent):
    views = memory(10**6)
    m = views.measure(1)
    with pytest.raises(wpinq.PlanError):
        views.measure("1e-18", name="x")
    assert spent(m) == 1
    views.measure(1001, name="x")  # the noise of a smaller epsilon, at the price that was said
    assert spent(m) == 1002


def test_rule_35_fine_and_heavy_weights_do_not_wrap():
    """10,000 records at a resolution of 2^-50 are beyond 64 bits of it; noise beyond every weight is added exactly."""
    views = memory(10**6, [("ann", "home")] * 10_000)
    slices = views.map(page).shave([Fraction(1, 2**50), 2000]).map(lambda page: page)
    assert abs(slices.measure(1000).observe("home") - 10_000) < 0.02
    m = memory(1, [("ann", "home")]).map(page).measure(Fraction(1, 2**56))
    assert m.observe("home") == int(m.observe("home")) != 0


def test_rules_05_36_a_finite_collection_has_no_continual_release(spent):
    """Trees of noise are for collections with epochs; elsewhere asking for one is an error that costs nothing."""
    views = memory()
    m = views.measure("0.1")
    with pytest.raises((TypeError, wpinq.PlanError)):
        views.map(page).measure("0.1", continual=True)
    assert spent(m) == Fraction(1, 10)


def test_rule_37_a_flow_holds_an_identity_key_and_nothing_else(views_file, monkeypatch):
    """What workers are given: plans and the identity key. No ledger, no release key, no noise is drawn in a run."""
    jobs = []
    true = local.run
    monkeypatch.setattr(local, "run", lambda job, **how: jobs.append(job) or true(job, **how))
    views = wpinq.protect(views_file, budget=1)
    m = views.map(page).shave().measure("0.1")
    m.observe(("home", 1))
    (job,) = jobs
    secret = m.key_owner.ledger.secret
    assert job.key == secret.derive("identity", m.key_owner.name, size=16)
    held = [getattr(job, name) for name in job.__slots__]
    assert not any(isinstance(one, (Ledger, Secret, Words)) for one in held), "and nodes give a flow columns only"
    loaded = "[one for one in sys.modules if one.startswith(('wpinq.core.noise', 'wpinq.core.ledger'))]"
    script = f"import sys, {flow.__name__}, wpinq.core.engines.local; print({loaded})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]", "engines load neither noise nor ledger"


@pytest.mark.parametrize("name", [None, "other"])
def test_attack_20_what_shares_a_ledger_is_charged_in_it(views_file, tmp_path, name, spent):
    """Another file is a version of the data set, or with a name a table beside it: each of its queries is charged."""
    views = wpinq.protect(views_file, budget=1)
    first = views.measure("1/4")
    first.observe(("ada", "home"))
    ledger = Path(f"{views_file}.ledger")
    other = tmp_path / "other.csv"
    other.write_text(views_file.read_text() + "zoe,home\n")
    wpinq.protect(other, budget=1, ledger=ledger, name=name).measure("1/4").observe(("ada", "home"))
    assert spent(first) == Fraction(1, 2)
    with pytest.raises(wpinq.LedgerError, match="unit"):
        wpinq.protect(other, budget=1, ledger=ledger, name=name, unit=wpinq.users("user", at_most=2))


def test_rule_25_paths_add_up_in_the_charge():
    """The scale and the charge come from the same sums: loss <= sum over paths of movement / scale."""
    views = memory(10)
    for collection, uses in diamonds(views).values():
        assert Survey.of(collection._node).scale(Fraction(1)) == uses
