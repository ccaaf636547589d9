"""Functions that are known by a name, and Pythons whose bytecode is not known.

Kinds of test: what a name stands for (one question in every Python, however the function is written), what is refused
under it, and a simulated Python that is newer than this wpinq, in which nothing is concluded from bytecode. `tests/
functions` as a whole runs on newer Pythons where there are some (`.ci/newer-python`).
"""

import warnings

import pytest

import wpinq
from wpinq.core.functions.code import bytecode, capture
from wpinq.errors import BudgetError, LedgerError, PlanError

COLUMNS = {"user": str, "page": str}
RECORDS = [("ann", "news/1"), ("bob", "news/2"), ("ann", "home")]


def site(page):
    return page.split("/")[0] or "none"


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    monkeypatch.setattr("wpinq.core.functions.versioned._CONTENTS", {})


@pytest.fixture
def newer(monkeypatch):
    """A Python that is newer than this wpinq knows."""
    monkeypatch.setattr(bytecode, "NEWEST", (3, 10))


def protected(path, **more):
    return wpinq.protect(RECORDS, budget=9, columns=COLUMNS, ledger=path / "ledger", version="july", **more)


def sites(views, function=site, version="1", **more):
    return views.map(wpinq.versioned(function, version, **more)).measure(epsilon=1)


def test_a_name_is_the_same_question_however_the_function_is_written(tmp_path, monkeypatch):
    one = sites(protected(tmp_path)).observe("news")
    monkeypatch.setattr("wpinq.core.functions.versioned._CONTENTS", {})  # as in another process
    views = protected(tmp_path)
    assert sites(views, lambda page: (page + "/").partition("/")[0] or "none", name="site").observe("news") == one
    assert views.left == 8
    sites(views, version="2"), sites(views, name="another")
    assert views.left == 6


def test_it_is_the_same_question_in_a_python_of_any_version(tmp_path, monkeypatch):
    one = sites(protected(tmp_path)).observe("news")
    for version in ((3, 11, 99), (3, 13, 0)):
        monkeypatch.setattr(capture.sys, "version_info", version)
        monkeypatch.setattr("wpinq.core.functions.versioned._CONTENTS", {})
        views = protected(tmp_path)
        assert sites(views).observe("news") == one and views.left == 8
    monkeypatch.setattr(bytecode, "NEWEST", (3, 10))
    monkeypatch.setattr("wpinq.core.functions.versioned._CONTENTS", {})
    views = protected(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert sites(views).observe("news") == one and views.left == 8


def test_another_computation_under_one_name_closes_the_version(tmp_path, monkeypatch):
    sites(protected(tmp_path)).observe("news")
    monkeypatch.setattr("wpinq.core.functions.versioned._CONTENTS", {})
    views = protected(tmp_path)
    with pytest.raises(LedgerError, match="closed"):
        sites(views, lambda page: page.upper(), name="site").observe("news")


def test_it_is_another_question_with_other_columns(tmp_path):
    views = protected(tmp_path)
    length = wpinq.versioned(len, "1", name="length")
    views.map("page").map(length).measure(epsilon=1), views.map("user").map(length).measure(epsilon=1)
    assert views.left == 7


@pytest.mark.parametrize("way", ["known", "newer"])
def test_two_functions_of_a_process_cannot_have_one_name(way, request):
    if way == "newer":
        request.getfixturevalue("newer")
    wpinq.versioned(lambda x: x, "1", name="f")
    wpinq.versioned(lambda x: x, "1", name="f")
    for other in (lambda x: x + 1, lambda x, k=2: x, len):
        with pytest.raises(PlanError, match="another function, or one that holds other values, is named 'f'"):
            wpinq.versioned(other, "1", name="f")
    wpinq.versioned(len, "2", name="f")
    with pytest.raises(PlanError, match="is named 'g', version '1'"):
        for least in (1, 2):
            wpinq.versioned(lambda x: x > least, "1", name="g")  # noqa: B023


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: wpinq.versioned(3, "1"), "takes a function, and got int"),
        (lambda: wpinq.versioned(wpinq.versioned(site, "1"), "2"), "takes a function, and got Versioned"),
        (lambda: wpinq.versioned(lambda x: x, "1"), "no name of its own; give name="),
        (lambda: wpinq.versioned(site, 1), r"versioned\(version=...\): takes a text"),
        (lambda: wpinq.versioned(site, ""), r"versioned\(version=...\): takes a text"),
        (lambda: wpinq.versioned(site, "1", name="a\nb"), r"versioned\(name=...\): takes a text"),
    ],
)
def test_what_cannot_be_named_is_refused(call, said):
    with pytest.raises(PlanError, match=said):
        call()


def test_a_tuple_needs_names(tmp_path):
    def swap(user, page):
        return page, user

    views = protected(tmp_path)
    with pytest.raises(PlanError, match="map: versioned\\(swap, '1'\\) returns a tuple; name its items"):
        views.map(wpinq.versioned(swap, "1"))
    named = views.map(wpinq.versioned(swap, "1"), columns={"page": str, "user": str})
    assert named.measure(epsilon=1).observe(("home", "ann")) is not None


def test_every_step_takes_one(tmp_path):
    views = protected(tmp_path)
    news = wpinq.versioned(lambda page: page.startswith("news"), "1", name="news")
    words = wpinq.versioned(lambda page: page.split("/"), "1", name="words")
    for plan in (views.filter(news), views.map("page").flat_map(words)):
        plan.measure(epsilon=1)
    left = views.left
    for plan in (views.filter(news), views.map("page").flat_map(words)):
        plan.measure(epsilon=1)
    assert views.left == left


# ---- a Python that is not known


@pytest.mark.usefixtures("newer")
def test_functions_run_unseen_and_each_question_is_new(tmp_path):
    views = protected(tmp_path)
    with pytest.warns(RuntimeWarning, match="this Python is newer than this wpinq"):
        plan = views.filter(lambda page: page != "home")
    assert "plain Python" in str(plan.explain()) and "no fingerprint: a new question every time" in str(plan.explain())
    for _ in range(2):
        plan.measure(epsilon=1)
    assert views.left == 7
    for text in (views.filter("page <> 'home'"), views.map("page")):
        text.measure(epsilon=1), text.measure(epsilon=1)
    assert views.left == 5


@pytest.mark.usefixtures("newer")
@pytest.mark.filterwarnings("ignore:this Python is newer")
def test_functions_compute_what_they_compute_elsewhere(monkeypatch):
    """The twelve lines of README, and a function that reads no column: nothing is left out that is not known to be."""
    views = wpinq.protect(RECORDS * 50, budget=10**6, columns=COLUMNS)
    ccdf = views.map(lambda page: page).shave().map(lambda page, index: index)
    sizes = views.map(lambda user, page: (page, len(user)))
    constant = views.map(lambda *_: 1)
    newer = [plan.measure(epsilon=10**5) for plan in (ccdf, sizes, constant)]
    seen = [newer[0].observe(3), newer[1].observe(("home", 3)), newer[2].observe(1)]
    assert [round(value) for value in seen] == [3, 50, 150]


@pytest.mark.usefixtures("newer")
@pytest.mark.filterwarnings("ignore:this Python is newer")
def test_a_stream_that_is_kept_takes_no_function_that_it_would_not_know_again(tmp_path):
    def start():
        return wpinq.live(COLUMNS, budget=9, ledger=tmp_path / "ledger", recover=tmp_path / "kept")

    views = start()
    with pytest.raises(PlanError, match="a function in it has no fingerprint, so after a restart of the stream"):
        views.map(site).measure(epsilon=1)
    sites(views)
    views.send(RECORDS)
    views.advance()
    views.close()
    views = start()
    sites(views)
    assert views.left == 8
    views.close()


def test_a_stream_does_not_go_on_under_another_python_at_a_new_charge(tmp_path, monkeypatch):
    def start():
        views = wpinq.live(COLUMNS, budget=9, ledger=tmp_path / "ledger", recover=tmp_path / "kept")
        return views, views.filter(lambda user: [user] == ["ann"])

    views, ann = start()
    ann.measure(epsilon=1), ann.measure(epsilon=1, continual=True)
    views.close()
    monkeypatch.setattr(capture.sys, "version_info", (3, 11, 99))
    views, ann = start()
    for more in ({}, {"continual": True}):
        with pytest.raises(BudgetError, match="a stream goes on with what it was charged for, and nothing was charged"):
            ann.measure(epsilon=1, **more)
    assert views.left == 7
    ann.measure(epsilon=1, name="again")
    assert views.left == 6
    views.close()
