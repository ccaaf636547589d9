"""One result type: aggregates, releases and SQL give the same table, files and pictures, which describe themselves."""

import datetime as dt
import itertools
import json

import polars as pl
import pyarrow.parquet as pq
import pytest

import wpinq
from wpinq.core.measurements.answer import Answer
from wpinq.testing import protected

LOUD = 400
KINDS = ("count", "median", "release", "sql")
CUT = "records beyond 30 of one user are not in it"


def views(budget=10**6):
    rows = [(f"u{i % 40}", f"p{i % 3}", i % 10) for i in range(1200)]
    unit = wpinq.users("user", at_most=30)
    return wpinq.protect(
        rows, budget=budget, delta=0.1, columns={"user": str, "page": str, "n": int}, unit=unit, name="v"
    )


def ask(kind, collection=None, epsilon=LOUD):
    v = collection or views()
    pages = ["p0", "p1", "p2"]
    query = "SELECT page, COUNT(*) AS n, AVG(n) AS mean FROM v GROUP BY page ORDER BY page"
    return {
        "count": lambda: v.count(epsilon, by="page", keys=pages),
        "median": lambda: v.median("n", (0, 9), epsilon, by="page", keys=pages),
        "release": lambda: v.map("page").measure(epsilon, name="pages").release(delta="1e-6"),
        "sql": lambda: wpinq.sql(query, {"v": v}, epsilon=epsilon, delta="1e-6", bounds={"n": (0, 9)}),
    }[kind]()


@pytest.mark.parametrize("kind", KINDS)
def test_every_answer_is_one_table_with_intervals_and_says_what_it_is(kind):
    answer = ask(kind)
    assert type(answer) is Answer
    frame = answer.frame
    assert frame.columns[0] == "page"
    assert frame.height == len(answer) == len(answer.rows) == 3
    ends = [name for name in frame.columns if name.endswith(("low", "high"))]
    assert len(ends) == 2 * (len(answer.columns) - 1)
    for row in frame.iter_rows(named=True):
        for name in answer.columns[1:]:
            low, high = (row[f"{name}_{end}" if f"{name}_{end}" in row else end] for end in ("low", "high"))
            assert low <= row[name] <= high
    about = answer.about
    assert (about["data set"], about["unit"], about["level"]) == ("v", "user (user), at most 30 records", 0.95)
    assert about["cost"]["epsilon"] == LOUD
    assert about["cost"]["delta"] == (1e-6 if kind in ("release", "sql") else 0)
    assert (about["threshold"] is None) is (kind in ("count", "median"))
    assert CUT in about["beside noise"]
    assert dt.date.fromisoformat(about["date"])


@pytest.mark.parametrize("kind", KINDS)
def test_files_describe_themselves(kind, tmp_path):
    answer = ask(kind)
    for suffix in (".csv", ".parquet", ".json"):
        answer.save(tmp_path / f"a{suffix}")
    first, *rest = (tmp_path / "a.csv").read_text().splitlines()
    assert json.loads(first.removeprefix("# ")) == answer.about
    assert len(rest) == 4
    read = pl.read_csv(tmp_path / "a.csv", comment_prefix="#")
    assert read.columns == answer.frame.columns
    assert pl.read_parquet(tmp_path / "a.parquet").equals(answer.frame)
    assert json.loads(pq.read_metadata(tmp_path / "a.parquet").metadata[b"wpinq"]) == answer.about
    content = json.loads((tmp_path / "a.json").read_text())
    assert [tuple(row) for row in content["rows"]] == list(answer.rows)
    assert content["beside noise"] == answer.about["beside noise"]
    with pytest.raises(wpinq.SourceError, match=r"must end in one of \.csv"):
        answer.save(tmp_path / "a.txt")


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_and_notebooks_say_source_unit_cost_and_what_is_left_out(kind, tmp_path):
    answer = ask(kind)
    figure = answer.plot(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 5000
    assert figure._repr_png_().startswith(b"\x89PNG")
    drawn = figure._suptitle.get_text() + " " + figure._supxlabel.get_text()
    shown = answer._repr_html_()
    for text in (drawn.replace("\n", " "), shown, repr(answer)):
        assert "of v, epsilon 400" in text
        assert "protects one user, at most 30 records each" in text
        assert CUT in text
        assert "noise alone" in text
    assert "<td>p1</td>" in shown
    assert len(repr(answer).splitlines()) < 12


def test_a_question_is_not_run_by_showing_it():
    answer = ask("count")
    assert "computed when it is first asked for" in repr(answer)
    assert "±" not in repr(answer)
    assert answer.rows
    assert "p1    400 ± 0" in repr(answer)


def test_notebooks_escape_the_names_of_groups():
    rows = [("<script>", f"u{i}") for i in range(50)]
    v = wpinq.protect(rows, budget=LOUD, columns={"page": str, "user": str}, delta=0.1)
    shown = v.map("page").measure(LOUD).release(delta="0.01")._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_one_number_has_a_value_and_an_interval_of_any_level():
    v = protected([("a", 1)] * 100, k="text", n=int)
    one = v.count(1)
    (low, high), (lower, higher) = one.interval(), one.interval("0.999")
    assert lower < low <= one.value <= high < higher
    assert one.frame.columns == ["value", "low", "high"]
    assert wpinq.sql("SELECT COUNT(*) AS c FROM v", {"v": v}, epsilon=LOUD).value == 100
    with pytest.raises(wpinq.PlanError, match="by groups"):
        _ = v.count(1, by="k", keys=["a"]).value
    with pytest.raises(wpinq.PlanError, match=r"charged at confidence=0\.95"):
        v.median("n", (0, 9), 1).interval("0.9")
    with pytest.raises(wpinq.PlanError, match="has no windows"):
        one.at(3)


@pytest.mark.parametrize("ends", [(dt.date.min, dt.date.max), (dt.datetime.min, dt.datetime.max), (dt.date.max,)])
def test_times_at_the_ends_of_the_calendar_are_drawn(ends, tmp_path):
    """9999-12-31 is what many tables have for never."""
    times = wpinq.protect([(end,) for end in ends] * 90, LOUD, columns={"t": type(ends[0])})
    answer = wpinq.sql("SELECT t, COUNT(*) AS n FROM v GROUP BY t", {"v": times}, epsilon=LOUD, keys=list(ends))
    answer.plot(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 5000


def test_numbers_and_times_are_drawn_as_lines_and_many_names_in_part():
    days = [(dt.date(2026, 1, 1 + i % 9), i % 90) for i in range(900)]
    v = wpinq.protect(days, budget=10**6, columns={"day": dt.date, "n": int})
    dates = [dt.date(2026, 1, 1 + i) for i in range(9)]
    assert v.count(LOUD, by="day", keys=dates).plot().axes[0].lines
    assert v.count(LOUD, by="n", keys=range(90)).plot().axes[0].lines
    names = v.map("n").map(str, columns={"n": str}).count(LOUD, by="n", keys=[str(i) for i in range(90)])
    figure = names.plot(title="$x_{")
    assert len(figure.axes[0].patches) == 40
    assert "The first 40 of 90 rows are drawn." in figure._supxlabel.get_text()


def test_completion_offers_what_users_call():
    offered = dir(protected(page="text").measure(1))
    assert {"observe", "observe_many", "interval", "release", "explain", "epsilon", "scale"} <= set(offered)
    assert not {"answer_from", "charge_also", "settled", "node", "key_owner", "purpose"} & set(offered)


def lines_at(axes, place):
    return [line for line in axes.lines if len(set(line.get_xdata())) == 1 and line.get_xdata()[0] == place]


def test_an_answer_says_its_version_where_the_name_of_the_data_set_does_not(tmp_path):
    """A table of 2024 said that it was counted of the file of 2023, whose name the ledger has."""
    terms, texts = {"unit": wpinq.users("user", at_most=1), "ledger": tmp_path / "ledger"}, []
    for year in (2023, 2024):
        (tmp_path / f"{year}.csv").write_text(f"user,page\nann,p{year}\n")
        data = wpinq.protect(tmp_path / f"{year}.csv", budget=9, **terms)
        texts.append(repr(data.count(epsilon=1)))
        table = wpinq.table(data, "page", categories={"page": ["p"]}, epsilon=1)
        assert table.notes[0].removeprefix("Counted ").rstrip(".") in texts[-1]
    assert "of 2023.csv, epsilon 1, protects one user" in texts[0]
    assert "of 2023.csv in version 2024.csv, epsilon 1, protects one user" in texts[1]


def test_a_picture_of_degrees_says_source_unit_and_cost_and_where_a_bound_cuts():
    """Views of a visitor fell off a cliff at the bound, within a band of 90%; the true tail went on to 900."""
    visitors, pages = views().map("user"), views().map("page")
    for fit in (
        wpinq.degrees.release(visitors, 2),
        wpinq.degrees.reconcile(
            wpinq.degrees.cdf(visitors).measure(1), wpinq.degrees.sequence(visitors).measure(1), method="path"
        ),
    ):
        figure = fit.plot()
        assert figure._repr_png_().startswith(b"\x89PNG")
        assert "of v, epsilon 2, protects one user, at most 30 records each" in figure._suptitle.get_text()
        caption = figure._supxlabel.get_text()
        assert "no item has more than 30 records" in caption
        assert CUT in caption
        assert "noise alone" in caption
        assert len(lines_at(figure.axes[0], 30)) == 1
    figure = wpinq.degrees.release(pages, 2).plot()
    assert not lines_at(figure.axes[0], 30)
    assert "no item has more" not in figure._supxlabel.get_text()
    assert CUT in figure._supxlabel.get_text()
    bare = wpinq.degrees.reconcile([6, 2, 3, 1], [5, 3, 2, 1], scales=(1, 1), method="path")
    assert bare.about is None
    assert "epsilon" not in bare.plot()._suptitle.get_text()


def test_a_measurement_describes_itself():
    about = views().map("user").measure("0.5", name="mine").about
    assert (about["query"], about["data set"], about["cost"]) == ("mine", "v", {"epsilon": 0.5, "delta": 0.0})
    assert about["beside noise"] == [CUT]
    assert about["cut"] is None
    assert wpinq.degrees.cdf(views().map("user")).measure(1).about["cut"] == 30


def test_a_saved_answer_says_what_was_done_before_the_bound_in_which_period_and_of_which_version(tmp_path):
    rows = [("ann", "/A?x=1", dt.date(2026, 6, 1)), ("bob", "/b", dt.date(2026, 6, 2))]
    columns = {"user": str, "page": str, "day": dt.date}
    unit = wpinq.users("user", at_most=5, period="1mo", at="day")
    steps = {"derive": {"page": "lower(split_part(page, '?', 1))"}, "where": "page <> '/x'"}
    visits = wpinq.protect(rows, 900, columns=columns, unit=unit, name="visits", version="2026-06", **steps)
    people = wpinq.protect([], 900, columns=columns, unit=unit, name="people", where=lambda user: user > "a")
    query = "SELECT v.page, COUNT(*) AS n FROM visits v JOIN people p ON v.user = p.user AND v.day = p.day GROUP BY 1"
    for answer, said in (
        (visits.count(LOUD, by="page", keys=["/a"]), ""),
        (wpinq.sql(query, {"visits": visits, "people": people}, epsilon=LOUD, keys=["/a"]), "people: where traced:"),
    ):
        answer.save(tmp_path / "a.csv")
        answer.save(tmp_path / "a.parquet")
        answer.save(tmp_path / "a.json")
        about = json.loads((tmp_path / "a.csv").read_text().splitlines()[0][2:])
        assert about == json.loads(pl.read_parquet_metadata(tmp_path / "a.parquet")["wpinq"])
        assert about.items() <= json.loads((tmp_path / "a.json").read_text()).items()
        steps = ["visits: page: lower(split_part(page, '?', 1))", "visits: where page <> '/x'"]
        assert about["before the bound"][:2] == steps
        assert said in " ".join(about["before the bound"])
        assert about["version"].split(", ")[0] == "2026-06"
        assert "one user in one month by day" in about["protects"]
        assert "in one window of 1mo by day" in about["unit"]
    file = tmp_path / "v.csv"
    file.write_text("user,page\nann,a\n")
    assert wpinq.protect(file, 9).count(1).about["version"] == "v.csv"


def test_labels_of_forty_bars_do_not_overlap_and_a_long_heading_is_not_cut():
    rows = [(f"u{number}", f"/blog/{number % 40}") for number in range(400)]
    v = wpinq.protect(rows, 10, columns={"user": str, "page": str})
    text = (
        "SELECT page, COUNT(*) AS n, COUNT(DISTINCT user) AS people_of_the_page FROM v WHERE page <> '/' GROUP BY page"
    )
    answer = wpinq.sql(text, {"v": v}, epsilon=1, keys=[f"/blog/{number}" for number in range(40)])
    figure = answer.plot()
    figure.draw_without_rendering()
    for axes in figure.axes:
        boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
        assert len(boxes) == 40 and all(one.y0 >= other.y1 for one, other in itertools.pairwise(boxes))
    heading = figure._suptitle.get_window_extent()
    assert heading.x0 >= 0 and heading.x1 <= figure.bbox.width


def test_files_hold_groups_that_their_formats_have_no_values_for(tmp_path):
    """As text that other programs read; a charge is never in vain."""
    groups = {
        bytes: {b"": "", b"\xff": "/w=="},
        dt.timedelta: {dt.timedelta(0): "P0D", dt.timedelta(-1, 1): "-PT86399S"},
        float: {1.5: 1.5, float("inf"): "Infinity"},
    }
    for kind, texts in groups.items():
        records = wpinq.protect([(group,) for group in texts] * 90, LOUD, columns={"g": kind})
        answer = wpinq.sql("SELECT g, COUNT(*) AS c FROM v GROUP BY g", {"v": records}, epsilon=LOUD, keys=list(texts))
        for suffix in (".csv", ".json", ".parquet"):
            answer.save(tmp_path / f"a{suffix}")
        content = json.loads((tmp_path / "a.json").read_text(), parse_constant=pytest.fail)
        assert [tuple(row) for row in content["rows"]] == [(text, 90) for text in texts.values()]
        table = pl.read_csv(tmp_path / "a.csv", comment_prefix="#")
        assert table["g"].to_list() == (list(texts) if kind is float else list(texts.values()))
        assert pl.read_parquet(tmp_path / "a.parquet").rows() == answer.frame.rows()
