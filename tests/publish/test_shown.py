"""A publication can be shown: intervals beside each number, the bias with its size, a page of all periods, feeds."""

import itertools
import json
import re
import sqlite3
from contextlib import closing

import polars as pl
import pytest
from browser import CHROMIUM, browser

from tests.publish.test_release import PAGES, given, release, wrote
from wpinq.apps.publish import Release
from wpinq.errors import PlanError

SQL = "SELECT page, COUNT(*) AS views FROM data GROUP BY page"


def question(**changes):
    one = {"name": "views", "sql": SQL, "keys": PAGES, "epsilon": 3, "plot": False} | changes
    return {name: value for name, value in one.items() if value is not None}


def test_each_number_has_its_interval_beside_it(tmp_path):
    wrote(tmp_path, 21)
    site = release(tmp_path, sink=[{"directory": "out/{date}", "formats": ["csv", "parquet", "json"]},
                                   {"sqlite": "site.db"}])  # fmt: skip
    site.run()
    place = tmp_path / "out" / "2026-11-21"
    table = pl.read_csv(place / "views.csv")
    assert table.columns == ["page", "views", "views_low", "views_high"]
    assert (table["views_low"] < table["views"]).all()
    assert (table["views"] < table["views_high"]).all()
    assert pl.read_parquet(place / "views.parquet").columns == table.columns
    assert json.loads((place / "views.json").read_text())["columns"] == table.columns
    with closing(sqlite3.connect(tmp_path / "site.db")) as stored:
        assert stored.execute("SELECT page, views, views_low, views_high FROM site_views").fetchall() == table.rows()
    assert site.verify("2026-11-21") == []


def test_within_chooses_the_epsilon(tmp_path):
    wrote(tmp_path, 21)
    plan = release(tmp_path, question=[question(within=5, epsilon=None)]).plan()
    (noise,) = plan.questions[0].expected
    assert noise.half_width <= 5
    assert 0 < plan.epsilon < 3


def test_what_the_bound_leaves_out_is_published_with_its_size(tmp_path):
    wrote(tmp_path, 21, people=600)
    asked = question(loss=2, at_most=1, epsilon=10)
    site = release(tmp_path, question=[asked])
    assert site.plan().epsilon == 12
    site.run()
    place = tmp_path / "out" / "2026-11-21"
    loss = pl.read_csv(place / "views_loss.csv")
    assert loss.columns == ["lost", "count", "count_low", "count_high"]
    (records,) = loss.filter(pl.col("lost") == "records").rows(named=True)
    assert abs(records["count"] - 1200) < 300, "of three records of each one is looked at"
    text = (place / "report.md").read_text()
    assert "leave out of these numbers: about " in text
    assert f"; about {round(records['count']):,} records (" in text
    assert site.verify("2026-11-21") == []


def test_the_report_has_its_numbers(tmp_path):
    wrote(tmp_path, 21)
    release(tmp_path).run()
    place = tmp_path / "out" / "2026-11-21"
    table = pl.read_csv(place / "views.csv")
    page = (place / "report.html").read_text()
    for name, views in table.select("page", "views").rows():
        assert f"<td>{name}</td>" in page
        assert f"<td>{views:,}</td>" in page


def test_what_does_not_go_together_is_refused(tmp_path):
    for wrong, why in (
        (question(within=5), "within chooses epsilon"),
        ({"name": "d", "degrees": "page", "epsilon": 1, "loss": 1}, "loss does not go with degrees"),
        (question(at_most=0), "at_most"),
    ):
        with pytest.raises(PlanError, match=why):
            Release(given(question=[wrong]), "site", tmp_path)
    with pytest.raises(PlanError, match="name of its own"):
        Release(given(question=[question(loss=1), question(name="views_loss")]), "site", tmp_path)


def paged(home, **words):
    return release(home, page={"title": "Views of <us>", "words": "Noisy.\n\nOn purpose."} | words,
                   question=[question(), question(name="all", sql="SELECT COUNT(*) AS views FROM data", keys=None)],
                   sink=[{"directory": "out/{date}", "formats": ["csv", "json"]}])  # fmt: skip


def written(home):
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in (home / "out").iterdir() if path.is_file()
    }


def test_the_page_shows_all_periods_and_the_feeds_the_latest(tmp_path):
    for day in (18, 19, 21):
        wrote(tmp_path, day, people=90 + day)
        paged(tmp_path).run(f"2026-11-{day}")
    wrote(tmp_path, 20)
    found = written(tmp_path)
    assert sorted(found) == ["index.html", "latest.csv", "latest.json"]
    page = found["index.html"][0].decode()
    assert len(page) < 34_000
    assert "<script" not in page
    assert "Views of &lt;us&gt;" in page
    assert page.count('class="line"') == len(PAGES) + 1, "a curve of each page, and one of all"
    assert page.count("2026-11-19: ") == len(PAGES) + 1
    for day in (18, 19, 21):
        assert f'href="2026-11-{day}/report.html"' in page
        assert (tmp_path / "out" / f"2026-11-{day}" / "report.html").is_file()
    latest = json.loads(found["latest.json"][0])
    table = pl.read_csv(tmp_path / "out" / "2026-11-21" / "views.csv")
    assert latest["period"]["name"] == "2026-11-21"
    assert sorted(latest["tables"]["views"]["data"]) == sorted(list(row) for row in table.rows())
    feed = pl.read_csv(tmp_path / "out" / "latest.csv")
    assert feed.columns == ["period", "table", "group", "column", "value", "low", "high"]
    assert sorted(feed.filter(pl.col("table") == "views").select("group", "value", "low", "high").rows()) == sorted(
        table.rows()
    )
    assert (tmp_path / "out" / "index.html").stat().st_mode & 0o044 == 0o044, "a server of pages may read it"


def test_a_run_that_repeats_leaves_the_page_and_one_that_was_lost_is_written_again(tmp_path):
    wrote(tmp_path, 21)
    paged(tmp_path).run()
    before = written(tmp_path)
    paged(tmp_path).run()
    wrote(tmp_path, 21, people=95)  # other records
    with pytest.warns(RuntimeWarning, match="changed since"):
        paged(tmp_path).run()
    wrote(tmp_path, 21)
    assert written(tmp_path) == before
    assert paged(tmp_path).verify("2026-11-21") == []
    (tmp_path / "out" / "index.html").write_text("other")
    (found,) = paged(tmp_path).verify("2026-11-21")
    assert "index.html" in found
    (tmp_path / "out" / "latest.csv").unlink()
    list(paged(tmp_path).deliver())  # which left it as it was, where the directory lacked nothing
    assert paged(tmp_path).verify("2026-11-21") == []
    (tmp_path / "out" / "index.html").write_text("other")
    paged(tmp_path).run()
    assert {name: content for name, (content, _) in written(tmp_path).items()} == {
        name: content for name, (content, _) in before.items()
    }


def test_what_people_wrote_is_no_markup(tmp_path):
    (tmp_path / "views").mkdir()
    nasty = "<img src=x onerror=alert(1)>"
    (tmp_path / "views" / "2026-11-21.csv").write_text("user,page\n" + "".join(f"u{n},{nasty}\n" for n in range(99)))
    asked = question(keys=[nasty], name="views")
    release(tmp_path, page={}, question=[asked]).run()
    for path in (tmp_path / "out" / "index.html", tmp_path / "out" / "2026-11-21" / "report.html"):
        assert "<img src=x" not in path.read_text()


def test_a_page_needs_a_directory_of_its_own(tmp_path):
    for sink in ({"sqlite": "a.db"}, {"directory": "{date}"}):
        with pytest.raises(PlanError, match=r"\[page\] is written beside"):
            release(tmp_path, page={}, sink=[sink])


def test_axes_and_gaps():
    from wpinq.apps.publish.evidence.curves import LARGE, Point, curve, number

    points = [Point("a", 5.0, 4.0, 6.0), Point("b", None), Point("c", 7.0, 6.0, 8.0), Point("d", 9.0, 8.0, 10.0)]
    drawn = curve(points, LARGE, "x")
    assert drawn.count('class="whisker"') == 1
    assert drawn.count('class="band"') == 1
    assert drawn.count("<circle") == 3
    assert curve([], LARGE, "none").endswith("</svg>")
    assert number(None) == ""


def test_a_page_that_a_killed_process_did_not_write_is_written_by_the_next(tmp_path, monkeypatch):
    from wpinq.apps.publish.publisher import Publisher

    def killed(_):
        raise KeyboardInterrupt

    wrote(tmp_path, 21)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Publisher, "show", killed)
        paged(tmp_path).run()
    assert not written(tmp_path)
    assert paged(tmp_path).run().done == "was published before"
    assert sorted(written(tmp_path)) == ["index.html", "latest.csv", "latest.json"]


def test_the_plan_says_from_which_count_on_groups_are_shown(tmp_path):
    wrote(tmp_path, 21, people=600)
    site = release(tmp_path, budget={"epsilon": 9, "delta": "1e-5"}, question=[question(keys=None, delta="1e-6")])
    (asked,) = site.plan().questions
    site.run()
    evidence = json.loads((tmp_path / "out" / "2026-11-21" / "evidence.json").read_text())
    assert asked.threshold == evidence["questions"][0]["tables"]["views"]["threshold"] > 1
    budget = {"epsilon": 9, "delta": "1e-5"}
    assert release(tmp_path, budget=budget).plan().questions[0].threshold is None


def shown(home, days, **changes):
    for day in days:
        wrote(home, day)
        release(home, page={}, **changes).run(f"2026-11-{day:02}")
    return (home / "out" / "index.html").read_text()


def test_a_period_that_was_not_published_is_a_gap_as_wide_as_in_the_calendar(tmp_path):
    asked = question(name="all", sql="SELECT COUNT(*) AS views FROM data", keys=None)
    page = shown(tmp_path, [1, 2, 7, 8], question=[asked])
    across = [float(one) for one in re.findall(r'<circle cx="([^"]+)"', page)]
    steps = [later - before for before, later in itertools.pairwise(across)]
    assert steps == pytest.approx([steps[0], 5 * steps[0], steps[0]], abs=0.6), "places are rounded to a tenth"
    assert page.count('class="line"') == page.count('class="band"') == 2, "no line and no band lead across the gap"


def test_rows_are_named_by_what_they_are_grouped_by_and_by_nothing_computed(tmp_path):
    asked = [
        question(sql="SELECT COUNT(*) AS views, FLOOR(COUNT(*) / 3) AS third, page FROM data GROUP BY page"),
        {"name": "often", "degrees": "user", "epsilon": 3, "plot": False},
        question(name="twice", sql="SELECT page, 2 * COUNT(*) AS doubled FROM data GROUP BY page"),
    ]
    page = shown(tmp_path, [20, 21], question=asked)
    for name in PAGES:
        assert page.count(f"<h3>{name}</h3>") == 1
    assert "<h3>occurrences 1</h3>" in page
    for name, keys in (("views", ["page"]), ("often", ["occurrences"]), ("twice", ["page"])):
        latest = json.loads((tmp_path / "out" / "latest.json").read_text())["tables"][name]["columns"]
        assert set(keys) < set(latest)
        evidence = json.loads((tmp_path / "out" / "2026-11-21" / "evidence.json").read_text())
        (told,) = [one["tables"][name]["keys"] for one in evidence["questions"] if name in one["tables"]]
        assert told == keys
    feed = pl.read_csv(tmp_path / "out" / "latest.csv", schema_overrides={"group": pl.String})
    assert set(feed.filter(pl.col("table") == "views")["group"]) == set(PAGES)
    assert "1" in feed.filter(pl.col("table") == "often")["group"].to_list()
    assert '<th class="n">doubled</th>' in page, "a number without an interval is in the table"


def test_named_totals_are_groups_of_the_page_and_its_feed(tmp_path):
    """Keys that an expression names were none: all groups had no name in the feed, and no curve on the page."""
    query = "SELECT COALESCE(page, 'all') AS what, COUNT(*) AS views FROM data GROUP BY ROLLUP (page)"
    keys = [["p1", 0], [None, 1]]
    page = shown(tmp_path, [20, 21], question=[question(sql=query, keys=keys)])
    assert page.count("<h3>p1</h3>") == page.count("<h3>all</h3>") == 1
    assert set(pl.read_csv(tmp_path / "out" / "latest.csv")["group"]) == {"p1", "all"}


def test_a_total_without_a_name_is_none_in_the_feed_as_on_the_page(tmp_path):
    query = "SELECT page, COUNT(*) AS views FROM data GROUP BY ROLLUP (page)"
    page = shown(tmp_path, [21], question=[question(sql=query, keys=[["p1", 0], [None, 1]])])
    assert "<h3>page none</h3>" in page
    assert set(pl.read_csv(tmp_path / "out" / "latest.csv")["group"]) == {"p1", "none"}


def test_a_degree_that_vanished_is_noticed_though_other_numbers_of_it_changed(tmp_path):
    from wpinq.apps.publish.checks import columns, doubts
    from wpinq.apps.publish.file.declared import Checks

    def of(*numbers):
        series = pl.Series("n", numbers)
        cells = pl.DataFrame({"occurrences": range(1, len(numbers) + 1), "n": numbers, "exactly": numbers})
        return list(columns({"t": (cells, {"n": (series - 1, series + 1)})}, {"t": ["occurrences"]}))

    past = [of(100, 50 + step) for step in range(3)]
    assert "almost nothing of 2" in " ".join(doubts(of(100, 0), past, Checks(totals=False)))
    assert doubts(of(100, 49), past, Checks(totals=False)) == []


LOOKS = """[...document.querySelectorAll("svg")].flatMap(svg => {
    const boxes = [...svg.querySelectorAll("text")].map(one => one.getBoundingClientRect())
    const frame = svg.getBoundingClientRect()
    const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
    return boxes.flatMap((one, place) => [
        one.height < 10 ? "small" : null, one.left < frame.left - 1 || one.right > frame.right + 1 ? "cut" : null,
        boxes.slice(place + 1).some(other => meet(one, other)) ? "upon another" : null])
}).filter(Boolean)"""


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
def test_in_chromium_every_name_can_be_read_and_nothing_is_wider_than_a_phone(tmp_path):
    asked = [question(), question(name="all", sql="SELECT COUNT(*) AS views FROM data", keys=None),
             question(name="both", sql="SELECT page, SUM(1) AS s, COUNT(*) AS n FROM data GROUP BY page",
                      keys=["/p1", "/" + "long" * 30])]  # fmt: skip
    shown(tmp_path, [1, 2, 3, 9, 10], question=asked, budget={"epsilon": 90})
    with browser(tmp_path / "profile") as tab:
        for width, phone in ((320, True), (390, True), (1100, False)):
            tab.look(width=width, phone=phone, dark=phone)
            tab.go((tmp_path / "out" / "index.html").as_uri())
            tab.value("document.querySelectorAll('details').forEach(one => one.open = true)")
            assert tab.value("document.documentElement.scrollWidth") <= width
            assert tab.value(LOOKS) == []
            paper = tab.value("getComputedStyle(document.body).backgroundColor")
            assert (paper == "rgb(18, 23, 29)") == phone
        assert tab.errors == []
