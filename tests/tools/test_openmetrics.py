"""Budgets as OpenMetrics: read by Prometheus' own parser, the same whatever the records, and told to curators alone."""

import urllib.error
import urllib.request
from fractions import Fraction

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from serving import serving, written

import wpinq
from wpinq.apps.cli import main
from wpinq.core.ledger import Ledger
from wpinq.core.plan.node import sources
from wpinq.errors import BudgetError, PlanError
from wpinq.tools.openmetrics import MEDIA, openmetrics


def figures(text):
    """Each figure by its name, its kind, and the analyst it is of."""
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.type == "gauge" and family.documentation
        for one in family.samples:
            key = (one.name.removeprefix("wpinq_ledger_"), *sorted(one.labels.items()))
            assert key not in found
            found[key] = one.value
    return {
        (name, dict(labels).get("kind"), dict(labels).get("analyst")): value for (name, *labels), value in found.items()
    }


def spent(place, rows, **budget):
    views = wpinq.protect(rows, ledger=place, columns={"user": str, "page": str}, name="views", **budget)
    pages = views.map("page")
    pages.measure(rho="1/4", mechanism="gaussian") if "rho" in budget else pages.measure("1/4", analyst='an"n\n\\')
    return Ledger.existing(place)


def test_a_name_that_is_no_utf8_is_no_analyst_and_a_label_that_can_be_written(tmp_path, capsys):
    """A cap of such a name was recorded, and `ledger metrics` ended in UnicodeEncodeError for ever."""
    place = tmp_path / "l\udcff"
    ledger = spent(place, [("ann", "/")], budget=2)
    for wrong in ("\udcff", b"ann", None):
        with pytest.raises(PlanError, match=r"cap\(analyst=...\)"):
            ledger.cap(wrong, Fraction(1))
    assert main(["ledger", "cap", str(place), "\udcff", "1"]) == 2
    assert "no valid text" in capsys.readouterr().err
    assert main(["ledger", "metrics", str(place)]) == 0
    assert 'wpinq_ledger_budget{kind="epsilon",ledger="' in capsys.readouterr().out


def test_a_cap_of_a_number_holds_the_analyst_of_that_number():
    views = wpinq.protect([("ann", "/")], columns=("user", "page"), budget=5)
    sources(views._node)[0].ledger.cap(7, 1)
    with pytest.raises(BudgetError, match="the cap of analyst '7'"):
        views.map("page").measure(epsilon=2, analyst=7)


def test_what_is_left_is_read_by_the_parser_of_prometheus(tmp_path):
    ledger = spent(tmp_path / "l", [("ann", "/")], budget=2, delta="1/8")
    ledger.cap('an"n\n\\', Fraction(1))
    assert figures(openmetrics({"views": ledger})) == {
        ("budget", "epsilon", None): 2, ("left", "epsilon", None): 1.75,
        ("delta", "epsilon", None): 0.125, ("delta_left", "epsilon", None): 0.125,
        ("cap", "epsilon", 'an"n\n\\'): 1, ("cap_left", "epsilon", 'an"n\n\\'): 0.75,
    }  # fmt: skip


def test_a_ledger_of_rho_says_rho(tmp_path):
    found = figures(openmetrics({"views": spent(tmp_path / "l", [("ann", "/")], rho=1)}))
    assert found["budget", "rho", None] == 1 and found["left", "rho", None] == 0.75


def test_figures_do_not_depend_on_records(tmp_path):
    """Neighbours, and no records at all: the same questions leave the same text."""
    rows = [("ann", "/"), ("bob", "/a")]
    texts = {
        openmetrics({"v": spent(tmp_path / str(number), part, budget=1)})
        for number, part in enumerate((rows, rows[:1], []))
    }
    assert len(texts) == 1


def test_the_command_names_each_ledger_by_its_path(tmp_path, capsys):
    for name in "ab":
        spent(tmp_path / name, [("ann", "/")], budget=1)
    assert main(["ledger", "metrics", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    families = list(text_string_to_metric_families(capsys.readouterr().out))
    labels = {one.labels["ledger"] for family in families for one in family.samples}
    assert labels == {str(tmp_path / name) for name in "ab"}
    assert main(["ledger", "metrics", str(tmp_path / "none")]) == 2


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with serving(written(tmp_path_factory.mktemp("site"))) as asker:
        yield asker


def scraped(site, token):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"{site.url}/api/metrics", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as found:
            return found.status, found.headers["content-type"], found.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["content-type"], error.read().decode()


def test_a_server_tells_curators_alone(site):
    assert scraped(site, None)[0] == 401
    assert scraped(site, site.token())[0] == 403
    status, media, text = scraped(site, site.token("boss", curator=True))
    assert (status, media) == (200, MEDIA)
    families = list(text_string_to_metric_families(text))
    assert {one.labels["ledger"] for family in families for one in family.samples} == {"views"}  # and not "hidden"
    assert figures(text)["budget", "epsilon", None] == 1000
