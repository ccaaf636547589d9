"""A question of a release that chooses its bound: priced before, charged in two steps, computed again for nothing."""

import pytest

from tests.publish.test_release import given
from tests.publish.test_ways import NOW
from wpinq.apps.publish import Release
from wpinq.core.ledger import Ledger
from wpinq.errors import BudgetError, PlanError

QUESTION = {"name": "n", "sql": "SELECT page, COUNT(*) AS n FROM data GROUP BY page", "keys": ["a", "b"],
            "epsilon": 9000, "plot": False, "at_most": "auto"}  # fmt: skip
DAY = "2026-11-03"


@pytest.fixture
def home(tmp_path):
    rows = "".join(f"u{n % 50},{'ab'[n % 2]}\n" for n in range(400))
    (tmp_path / f"views-{DAY}.csv").write_text(f"user,page\n{rows}")
    return tmp_path


def release(home, budget=20000, **more):
    data = {"source": "views-{date}.csv", "ledger": "L", "unit": {"column": "user"}}
    file = given(data=data, budget={"epsilon": budget, "delta": "1e-3"}, question=[{**QUESTION, **more}],
                 sink=[{"directory": "pub/{date}"}])  # fmt: skip
    return Release(file, "views", home, clock=lambda: NOW)


def test_a_question_chooses_its_bound_for_a_part_of_its_price(home):
    (told,) = release(home).plan(DAY).questions
    assert told.price.epsilon == 9000
    assert [one.scale for one in told.expected] == [None]
    assert not (home / "L").exists()
    release(home).run(DAY)
    lines = (home / "pub" / DAY / "n.csv").read_text().splitlines()
    assert [line.split(",")[:2] for line in lines[1:]] == [["a", "200"], ["b", "200"]]
    ledger = Ledger.existing(home / "L")
    assert ledger.spent()[0] == 9000
    assert sorted(one.epsilon for one in ledger.entries() if one.kind == "charge") == [3000, 6000]
    assert release(home).verify(DAY) == []
    release(home).run(DAY)
    assert Ledger.existing(home / "L").spent()[0] == 9000
    report = (home / "pub" / DAY / "report.md").read_text()
    assert "scale by the bound that was chosen" in report
    assert "8 was chosen with epsilon 3000 for 2 bins" in report.replace("\\", "")


def test_what_does_not_fit_is_refused(home):
    with pytest.raises(BudgetError):
        release(home, budget=8000).run(DAY)
    assert Ledger.existing(home / "L").spent()[0] == 0
    with pytest.raises(PlanError, match="give epsilon="):
        release(home, budget=8000, epsilon=None, within=3).plan(DAY)
    file = given(data={"source": "views-{date}.csv", "ledger": "L", "unit": {"column": "user", "at_most": "auto",
                                                                             "epsilon": 1}})  # fmt: skip
    with pytest.raises(PlanError, match="belongs to a question"):
        Release(file, "views", home, clock=lambda: NOW)
