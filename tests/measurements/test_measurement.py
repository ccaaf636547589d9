"""Measurements, end to end: charged first, computed once, answered the same for ever."""

import copy
import os
import pickle
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import processes
import pytest

import wpinq
from wpinq.core.engines import local
from wpinq.core.ledger import Ledger
from wpinq.core.plan.node import sources

RECORDS = [("ann", "home"), ("bob", "home"), ("bob", "news"), ("cid", "home")]


def page(user, page):
    return page


def spent(path):
    return Ledger.existing(path.with_name(path.name + ".ledger")).spent()[0]


def test_true_weights_show_through_little_noise(views_file):
    pages = wpinq.protect(views_file, budget=10**6).map(page)
    m = pages.measure(epsilon=1000)
    assert m.observe("home") == 3
    assert m.observe_many(["news", "home", "nothing"]).tolist() == [1, 3, 0]
    assert m.scale == Fraction(1, 1000)


def test_absent_bins_are_noise_of_the_right_scale(views_file):
    m = wpinq.protect(views_file, budget=1).map(page).measure(epsilon=0.1)
    noise = m.observe_many([f"absent {i}" for i in range(20000)])
    assert noise.dtype == np.int64
    r = np.exp(-0.1)
    expected = 2 * r / (1 - r) ** 2  # variance of the two-sided geometric; its fourth moment gives 5 sigma = 0.08
    assert abs(noise.var() / expected - 1) < 0.08
    assert abs(noise.mean()) < 5 * np.sqrt(expected / 20000)


def test_asking_again_gives_the_same_answer_in_any_order(views_file):
    m = wpinq.protect(views_file, budget=1).map(page).measure(epsilon=0.1)
    bins = ["home", "x", "news", "y"]
    first = m.observe_many(bins).tolist()
    assert [m.observe(one) for one in reversed(bins)] == first[::-1]


def test_the_script_can_be_run_twice_for_one_charge(views_file):
    script = (
        "import sys, wpinq\n"
        "m = wpinq.protect(sys.argv[1], budget=0.3).map(lambda user, page: page).measure(epsilon=0.2)\n"
        "print(m.observe_many(['home', 'nowhere', 'elsewhere']).tolist())\n"
    )
    answers = set()
    for seed in "01":
        done = processes.run(
            [sys.executable, "-c", script, str(views_file)],
            capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed},
        )  # fmt: skip
        answers.add(done.stdout)
    assert len(answers) == 1
    assert spent(views_file) == Fraction(1, 5)


def test_one_run_answers_everything_that_waits(views_file, monkeypatch):
    runs = []
    true_run = local.run
    monkeypatch.setattr(local, "run", lambda job, **how: runs.append(len(job.roots)) or true_run(job, **how))
    pages = wpinq.protect(views_file, budget=10).map(page)
    measured = [pages.measure(1), pages.shave().measure(1), pages.filter(lambda page: page == "home").measure(1)]
    assert runs == []
    measured[1].observe(("home", 1))
    for m, asked in zip(measured, ["home", ("home", 2), "home"], strict=True):
        m.observe(asked)
    assert runs == [3]
    pages.measure(2).observe("home")
    assert runs == [3, 1]


def test_names_scales_and_mechanisms_are_independent_noise(views_file):
    pages = wpinq.protect(views_file, budget=100).map(page)
    bins = [f"absent {i}" for i in range(3000)]
    noise = [
        pages.measure(0.1).observe_many(bins),
        pages.measure(0.1, name="again").observe_many(bins),
        pages.measure(0.1, mechanism="laplace").observe_many(bins),
        pages.measure(0.11).observe_many(bins),
        pages.filter(lambda page: page != "zzz").measure(0.1).observe_many(bins),
    ]
    for i in range(len(noise)):
        for j in range(i):
            assert abs(np.corrcoef(noise[i], noise[j])[0, 1]) < 5 / np.sqrt(len(bins))  # 10 looks, 6e-7 each


def test_equal_histograms_of_different_questions_have_different_noise(views_file):
    """Privacy rule 3: equal answers must not be seen to be equal."""
    pages = wpinq.protect(views_file, budget=100).map(page)
    nothing = [
        pages.filter(lambda page: page == "nobody").measure(1),
        pages.filter(lambda page: page == "none").measure(1),
    ]
    bins = [f"b{i}" for i in range(200)]
    assert (nothing[0].observe_many(bins) != nothing[1].observe_many(bins)).any()


def test_the_same_question_is_free_and_another_is_not(views_file):
    views = wpinq.protect(views_file, budget=0.3)
    one = views.map(page).measure(0.1)
    assert views.map(page).measure(0.1).observe("home") == one.observe("home")
    assert spent(views_file) == Fraction(1, 10)
    views.map(page).measure(0.2, name="other")
    assert spent(views_file) == Fraction(3, 10)
    with pytest.raises(wpinq.BudgetError) as refused:
        views.map(page).measure(0.1, name="third")
    assert refused.value.remaining == 0
    assert refused.value.requested == Fraction(1, 10)
    assert spent(views_file) == Fraction(3, 10)


def test_what_the_ledger_names_is_text_and_a_number_is_read_as_text(views_file):
    """A number was kept as it was, and `wpinq ledger show` failed on that ledger for ever."""
    views = wpinq.protect(views_file, budget=1, version=7, name="views")
    views.measure(0.1, name=1, analyst=5)
    assert wpinq.protect(views_file, budget=1, version="7", name="views").measure(0.1, name="1").name == "1"
    row = Ledger.existing(views_file.with_name("views.csv.ledger")).entries()[-1]
    assert (row.number, row.label, row.version, row.analyst) == (3, "1", "7", "5")
    for wrong in (b"x", ("a",), 1.5, True):
        for call in (
            lambda wrong=wrong: views.measure(0.1, name=wrong),
            lambda wrong=wrong: views.measure(0.1, analyst=wrong),
            lambda wrong=wrong: wpinq.protect(views_file, budget=1, name=wrong),
            lambda wrong=wrong: wpinq.protect(views_file, budget=1, version=wrong),
            lambda wrong=wrong: wpinq.live(("user", "page"), budget=1, name=wrong),
        ):
            with pytest.raises(wpinq.PlanError, match="takes text"):
                call()
    assert spent(views_file) == Fraction(1, 10)


def test_an_empty_version_declares_none(views_file):
    (home,) = sources(wpinq.protect(views_file, budget=1, version="")._node)
    assert home.version == "views.csv"


def test_a_secret_is_a_secret(views_file):
    with pytest.raises(wpinq.LedgerError, match="WPINQ_SECRET"):
        wpinq.protect(views_file, budget=1, secret=b"x" * 32)
    assert not views_file.with_name("views.csv.ledger").exists()


def test_a_tenth_and_two_tenths_fill_three_tenths(views_file):
    views = wpinq.protect(views_file, budget=0.3)
    views.measure(0.1, name="a")
    views.measure(0.2, name="b")
    assert spent(views_file) == Fraction(3, 10)


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), True, "x", None, 1j, "1/0"])
def test_amounts_that_are_no_amounts(views_file, wrong):
    views = wpinq.protect(views_file, budget=1)
    with pytest.raises(wpinq.ExactnessError):
        views.measure(epsilon=wrong)
    with pytest.raises((wpinq.ExactnessError, wpinq.LedgerError)):
        wpinq.protect(views_file, budget=wrong, ledger=views_file.with_name("other"))
    assert spent(views_file) == 0


def test_nothing_shows_a_bin(views_file):
    views = wpinq.protect(views_file, budget=1)
    m = views.map(page).measure(0.1)
    m.observe("home")
    for thing in (views, m):
        for ask in (len, iter, list):
            with pytest.raises(TypeError, match=f"'{type(thing).__name__}'"):
                ask(thing)
        assert thing  # a question by `if` is not one about its size
        with pytest.raises(TypeError):
            "home" in thing  # noqa: B015
        assert "home" not in repr(thing)
        assert "ann" not in repr(thing)
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            copied(m)


def test_bins_of_the_wrong_type_cost_nothing_and_say_so(views_file):
    m = wpinq.protect(views_file, budget=1).map(page).measure(0.1)
    with pytest.raises(wpinq.BinError, match="text"):
        m.observe(5)
    with pytest.raises(wpinq.BinError):
        m.observe_many("home")
    with pytest.raises(wpinq.BinError, match="one value"):
        m.observe_many(np.array("home"))


@pytest.mark.parametrize("wrong", [None, "ann", ("ann",), ("ann", "home", 1), {"ann": 1, "home": 2}])
def test_a_bin_of_two_columns_is_two_values(wrong):
    m = wpinq.protect([("ann", "home")], budget=1).measure(0.1)
    for ask in (lambda: m.observe(wrong), lambda: m.observe_many([("ann", "home"), wrong])):
        with pytest.raises(wpinq.BinError, match="tuple of 2 values"):
            ask()


def test_a_file_that_changes_after_protect_is_not_answered_from(views_file):
    m = wpinq.protect(views_file, budget=1).map(page).measure(0.1)
    views_file.write_text(views_file.read_text() + "dan,home\n")
    with pytest.raises(wpinq.SourceError, match="changed after it was opened"):
        m.observe("home")


def test_a_new_version_is_charged_and_has_new_noise(views_file):
    bins = [f"absent {i}" for i in range(100)]
    first = wpinq.protect(views_file, budget=1).map(page).measure(0.1).observe_many(bins)
    views_file.write_text(views_file.read_text() + "dan,home\n")
    second = wpinq.protect(views_file, budget=1, version="next").map(page).measure(0.1).observe_many(bins)
    assert (first != second).any()
    assert spent(views_file) == Fraction(2, 10)


def test_data_that_changed_behind_a_declared_version_are_refused_for_every_question(views_file):
    def ask(which):
        views = wpinq.protect(views_file, budget=1, version="monday")
        return views.filter(which).map(page).measure(0.1).observe("home")

    ask(lambda user: user == "ann")
    views_file.write_text(views_file.read_text().replace("cid", "dan"))
    messages = []
    for which in (lambda user: user == "ann", lambda user: user == "dan", lambda user: user != "x"):
        with pytest.raises(wpinq.ChangedError) as refused:
            ask(which)
        messages.append(str(refused.value))
    assert len(set(messages)) == 1, "the refusal may not tell which question the change mattered to"


def test_data_that_changed_under_an_unchanged_time_are_refused(views_file):
    """Size and time of change are forged: the digest of the bytes sees it before anything is charged."""
    state = views_file.stat()
    wpinq.protect(views_file, budget=1).map(page).measure(0.1).observe("home")
    views_file.write_text(views_file.read_text().replace("bob,news", "bob,home"))
    os.utime(views_file, ns=(state.st_atime_ns, state.st_mtime_ns))
    with pytest.raises(wpinq.ChangedError):
        wpinq.protect(views_file, budget=1)
    assert spent(views_file) == Fraction(1, 10)


def test_records_in_memory_have_a_budget_of_their_own():
    views = wpinq.protect(RECORDS, budget=0.1)
    views.map(page).measure(0.1).observe("home")
    with pytest.raises(wpinq.BudgetError):
        views.measure(0.1)
    with pytest.raises(wpinq.PlanError, match="budget"):
        wpinq.protect(RECORDS)


def test_interval_holds_the_truth_at_its_level(views_file):
    """Exact for the geometric: the least t with P(|noise| <= t) at least the level."""
    m = wpinq.protect(views_file, budget=1).map(page).measure(0.1)
    r = np.exp(-0.1)
    t = m.interval(0.95)
    assert 1 - 2 * r ** (t + 1) / (1 + r) >= 0.95 > 1 - 2 * r**t / (1 + r)


def test_explain_spends_nothing_and_shows_the_cost(views_file, capsys):
    views = wpinq.protect(views_file, budget=1)
    text = views.map(page).shave().map(lambda page, index: index).explain(epsilon=0.1)
    assert capsys.readouterr().out.strip() == str(text).strip()
    for part in (
        "shave()",
        "stability 1",
        "protect(views.csv)",
        "scale 10",
        "'views.csv': epsilon 0.1",
        "columns: index",
    ):
        assert part in text
    assert spent(views_file) == 0


def test_parameters_match_by_name_else_by_position():
    wide = [tuple(f"{c}{i}" for c in "abcdefgh") for i in range(3)]
    views = wpinq.protect(wide, budget=100, columns=tuple("abcdefgh"))
    assert views.map(lambda f: f).columns == ("f",)
    assert views.map(lambda h, a: (h, a)).measure(10).observe(("h1", "a1")) == 1
    with pytest.raises(wpinq.PlanError, match="map"):
        views.map(lambda x, y: x)


def test_functions_that_raise_drop_the_record_uncounted():
    views = wpinq.protect([("a", "1"), ("b", "x"), ("c", "2")], budget=1000)
    m = views.map(lambda user, page: int(page)).measure(100)
    assert m.observe_many([1, 2, 3]).tolist() == [1, 1, 0]


def test_what_cannot_be_fingerprinted_is_a_new_question_every_time():
    class Opaque:
        def __init__(self):
            self.seen = object()

        def __call__(self, user, page):
            return page

    opaque = Opaque()
    views = wpinq.protect(RECORDS, budget=0.2)
    views.map(opaque).measure(0.1)
    views.map(opaque).measure(0.1)
    with pytest.raises(wpinq.BudgetError):
        views.map(opaque).measure(0.1)


def test_an_empty_collection_is_all_noise(tmp_path):
    empty = tmp_path / "none.csv"
    empty.write_text("user,page\n")
    pages = wpinq.protect(empty, budget=1).map(page)
    assert pages.measure(0.1).observe_many([f"p{i}" for i in range(50)]).any()
    cdf = wpinq.degrees.cdf(pages).measure(0.5)
    assert len(cdf.observe_many(range(1, 100))) == 99


def test_a_measurement_without_a_price_says_what_to_give(views_file):
    pages = wpinq.protect(views_file, budget=1).map(page)
    with pytest.raises(wpinq.ExactnessError, match=r"give either epsilon=.* or within="):
        pages.measure()
    with pytest.raises(wpinq.PlanError, match=r"not measured yet; call \.measure"):
        wpinq.degrees.reconcile(wpinq.degrees.cdf(pages), wpinq.degrees.sequence(pages))
    assert spent(views_file) == 0


def test_bins_that_only_look_like_none_are_read_or_refused():
    """A bytearray is bytes; a signalling NaN raises when it is compared, and is no bin of any column."""
    pages = wpinq.protect([(b"a",)], budget=1, columns={"page": bytes}).measure(epsilon=1)
    assert pages.observe(bytearray(b"a")) == pages.observe(b"a")
    for kind in (int, float, bool, None):
        measured = wpinq.protect([(1,)], budget=1, columns={"n": kind}).measure(epsilon=1)
        with pytest.raises(wpinq.BinError, match="Decimal does not fit"):
            measured.observe(Decimal("sNaN"))


@pytest.mark.parametrize("bins", [[1, 2], range(1, 3)])
def test_several_bins_are_pointed_to_the_call_that_takes_them(bins):
    measured = wpinq.protect([(1,)], budget=1, columns={"n": int}).measure(epsilon=1)
    with pytest.raises(wpinq.BinError, match="of the type integer; several are asked by observe_many"):
        measured.observe(bins)
