"""A column that is null in every record stops `plan` and `run --check`, and is a warning of `run`, which goes on."""

import datetime as dt

import pytest

from tests.publish.test_release import PAGES, given, wrote
from wpinq.apps.publish import Release
from wpinq.core.ledger import Ledger
from wpinq.errors import SourceError

NOW = dt.datetime(2026, 11, 22, 6, tzinfo=dt.UTC)


def release(home, kind, **changes):
    data = {"columns": {"n": kind}, "source": "views/{date}.csv", "ledger": "ledger",
            "unit": {"column": "user", "at_most": 3}}  # fmt: skip
    question = {"name": "views", "sql": "SELECT page, COUNT(*) AS v FROM data WHERE n > 0 GROUP BY page",
                "keys": PAGES, "epsilon": 3, "plot": False}  # fmt: skip
    return Release(given(data=data, question=[question | changes]), "site", home, clock=lambda: NOW)


def numbered(home, number):
    path = wrote(home, 21)
    head, *rows = path.read_text().splitlines()
    path.write_text("\n".join([head + ",n", *(f"{row},{number}" for row in rows)]) + "\n")


def test_a_wrong_type_stops_the_plan_and_a_run_that_checks(tmp_path):
    numbered(tmp_path, "7.5")
    site = release(tmp_path, "int")
    for refused in (site.plan, lambda: site.run(check=True)):
        with pytest.raises(SourceError, match=r"2026-11-21: 'n' \(integer\) is null in every record .*wpinq check"):
            refused()
    assert all(row.kind != "charge" for row in Ledger.existing(tmp_path / "ledger").entries())
    assert release(tmp_path, "float").plan().epsilon == 3


def test_a_run_goes_on_and_tells_the_curator(tmp_path):
    numbered(tmp_path, "7.5")
    with pytest.warns(RuntimeWarning, match="'n' .*null in every record"):
        assert release(tmp_path, "int").run().done == "published"


def test_a_column_that_no_question_reads_is_nothing(tmp_path, recwarn):
    numbered(tmp_path, "")
    site = release(tmp_path, "int", sql="SELECT page, COUNT(*) AS v FROM data GROUP BY page")
    site.plan()
    assert site.run(check=True).done == "published"
    assert not recwarn.list


def test_one_value_is_enough_and_no_records_are_too(tmp_path, recwarn):
    numbered(tmp_path, "x")
    path = tmp_path / "views" / "2026-11-21.csv"
    path.write_text(path.read_text() + "ann,/p1,7\n")
    release(tmp_path, "int").plan()
    path.write_text("user,page,n\n")
    release(tmp_path, "int").plan()
    assert release(tmp_path, "int").run(check=True).done == "published"
    assert not recwarn.list
