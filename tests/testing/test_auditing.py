"""wpinq.testing.audit and `wpinq audit`: right dataflows pass, each kind of fault is found, small and shown."""

import datetime as dt
import random
import runpy

import pytest
from depth import thin

import wpinq
from wpinq.apps.cli import main
from wpinq.core.plan.dataset import DataSet
from wpinq.testing import audit, recheck

COLUMNS = {"user": "text", "page": "text", "age": "integer", "x": "number", "at": "timestamp", "v": None}
PEOPLE = [None, wpinq.users("user", at_most=2, per=("page", 1)), wpinq.users("user", shared=True)]


def many(views):
    pages = views.map("page")
    return {
        "pages": pages.measure(1), "grown": views.filter(lambda age: age > 18).map(lambda x, v: (x, v)).measure(1),
        "degrees": wpinq.degrees.cdf(pages).measure(1), "sizes": views.group_by("user", len).measure(1),
        "count": views.count(epsilon=1), "names": pages.select(epsilon=1),
    }  # fmt: skip


def joined(views):
    return {"pairs": views.map("user, page").join(views.map("user, age"), on="user").measure(1)}


def windows(views):
    return {"days": views.window("1d", at="at").map("page").measure(1)}


def forever(views):
    return {"pages": views.map("page").measure(1, continual=True), "ages": views.map("age").measure(1)}


def asks_more(views):
    pages = views.map("page").measure(1)
    more = {"ages": views.map("age").measure(1)} if pages.observe("a") > 2 else {}
    return {"pages": pages, **more}


def in_sql(views):
    query = "SELECT page, COUNT(*) AS c, SUM(age) AS s FROM t GROUP BY page"
    return {"all": views.measure(1), "s": wpinq.sql(query, {"t": views}, epsilon=1, delta=1e-6, bounds={"age": (0, 9)})}


def gaussian(views):
    return {"pages": views.map("page").measure(rho=1, mechanism="gaussian")}


@thin(2)  # each unit once, both dataflows
@pytest.mark.parametrize("unit", PEOPLE, ids=["record", "bounded", "shared"])
@pytest.mark.parametrize("dataflow", [many, windows], ids=lambda one: one.__name__)
def test_nothing_is_found_in_what_is_right(dataflow, unit):
    done = audit(dataflow, COLUMNS, unit=unit, cases=4)
    assert done, str(done)
    assert done.cases == 4


@thin(2)
@pytest.mark.parametrize("dataflow", [forever, asks_more, gaussian, joined, in_sql], ids=lambda one: one.__name__)
def test_nor_in_streams_and_in_scripts_that_look_at_answers(dataflow):
    done = audit(dataflow, COLUMNS, cases=8)
    assert done, str(done)


# ---- faults


def remembers(views):
    """Each page the first time that it comes."""
    seen = []

    def first(page):
        seen.append(page)
        return seen.count(page) == 1

    return views.filter(first).measure(1)


def draws(views):
    return views.filter(lambda page: random.random() < 0.5).measure(1)


def looks_at_the_clock(views):
    return views.map(lambda page: dt.datetime.now().microsecond, columns={"x": int}).measure(1)


def says_less_than_it_moves(views):
    """An operator that says that it is 1-stable, and is 3-stable."""
    right = views.flat_map(lambda page: [page, page, page], whole=True, at_most=3)
    own = type("Wrong", (type(right._node),), {"stability": (1,)})
    wrong = own(**{name: getattr(right._node, name) for name in right._node.__dataclass_fields__})
    return right._then(wrong).measure(1)


def reads_beside(views):
    """A script that finds its own way to the records, and asks more where there are many."""
    (node,) = [one for one in wpinq.core.plan.node.steps(views._node) if not one.inputs]
    data: DataSet = node.data
    count = sum(len(frame) for frame in data.reader.batches(node.schema.names))
    return [views.measure(1), *(views.map("page").measure(1) for _ in range(count > 2))]


def tells(views):
    (node,) = [one for one in wpinq.core.plan.node.steps(views._node) if not one.inputs]
    print(sum(len(frame) for frame in node.data.reader.batches(node.schema.names)))
    return views.measure(1)


FAULTS = {
    remembers: "function", draws: "function", looks_at_the_clock: "function", says_less_than_it_moves: "movement",
    reads_beside: "control flow", tells: "control flow",
}  # fmt: skip


@pytest.mark.parametrize("dataflow", FAULTS, ids=lambda one: one.__name__)
def test_a_fault_is_found_and_made_small(dataflow):
    done = audit(dataflow, {"user": "text", "page": "text"})  # which cases come follows from this module's constants
    found = done.counterexample
    assert found.finding.kind == FAULTS[dataflow], str(done)
    assert len(found.case.own) == 1
    assert len(found.case.others) <= 2
    assert found.finding.kind in {one.kind for one in recheck(dataflow, found.case, found.way)}
    assert not recheck(lambda views: views.measure(1), found.case, found.way)


def test_notes_tell_what_is_no_fault():
    done = audit(lambda views: views.map(lambda age: 1 / age, columns={"x": float}).measure(1), {"age": int}, cases=11)
    assert done
    assert any("no value for some records" in note for note in done.notes)


def test_an_audit_tries_a_case_at_least():
    """Of no case it said that nothing was found, which is true of it."""
    for cases in (0, -1):
        with pytest.raises(wpinq.PlanError, match=r"audit\(cases=\.\.\.\): takes a whole number above zero"):
            audit(joined, COLUMNS, cases=cases)
    assert audit(joined, COLUMNS, seconds=-1).cases == 1


def test_what_cannot_be_audited_is_said():
    with pytest.raises(wpinq.PlanError, match="it asks nothing"):
        audit(lambda views: None, {"page": "text"})
    with pytest.raises(wpinq.PlanError, match="no column"):
        audit(lambda views: views.map("nothing").measure(1), {"page": "text"})
    with pytest.raises(wpinq.PlanError, match="a whole number"):
        audit(many, COLUMNS, cases="many")


# ---- the command

GOOD = "def dataflow(views):\n    return {'pages': views.map(lambda page: page).measure(1)}\n"
BAD = """
seen = []

def first(page):
    seen.append(page)
    return seen.count(page) == 1

def dataflow(views):
    return {"first": views.filter(first).measure(1)}
"""
SETS = "def dataflow(views):\n    return {'s': views.map(lambda page, user: next(iter({page, user, 'z'})), columns={'x': str}).measure(1)}\n"  # noqa: E501


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "views.csv").write_text("user,page\nSECRET,nowhere\n" * 9)
    return tmp_path


def test_the_command_finds_a_fault_and_writes_a_script_that_shows_it(place, capsys):
    (place / "flow.py").write_text(BAD)
    assert main(["audit", "flow.py", "views.csv", "--unit", "user", "--at-most", "2", "--out", "found.py"]) == 1
    told = capsys.readouterr().out
    assert "no function of its record" in told
    assert "SECRET" not in told
    runpy.run_path("found.py", run_name="__main__")
    assert "no function of its record" in capsys.readouterr().out
    assert sorted(one.name for one in place.iterdir()) == ["flow.py", "found.py", "views.csv"]


def test_the_command_tries_the_values_that_a_script_looks_for(place, capsys):
    """It made records up of the texts of wpinq's own loader, and of none of the script's."""
    rare = BAD.replace(
        "    seen.append(page)\n", "    if page != 'zebra 7':\n        return True\n    seen.append(page)\n"
    )
    (place / "flow.py").write_text(rare)
    assert main(["audit", "flow.py", "views.csv", "--unit", "user", "--at-most", "2", "--out", "found.py"]) == 1
    assert "zebra 7" in (place / "found.py").read_text()
    assert "no function of its record" in capsys.readouterr().out


def test_the_command_finds_nothing_and_compares_with_other_processes(place, capsys, monkeypatch):
    for script, code in ((GOOD, 0), (SETS, 1)):
        (place / "flow.py").write_text(script)
        arguments = ["audit", "flow.py", "--cases", "3", "--columns", "user,page"]
        monkeypatch.setattr("sys.argv", ["wpinq", *arguments])
        monkeypatch.setattr("wpinq.apps.cli.audit.OTHERS", ("1", "2")[: 1 + code])
        assert main(arguments) == code
        told = capsys.readouterr().out
        assert "nothing found" in told
        assert ("another process" in told) == bool(code)
