"""Plans as JSON: every operator travels or says that it cannot, and means the same where it arrives; no secret does."""

import dataclasses
import importlib
import json
import pkgutil

import polars as pl
import pytest
from algebra import STEPS, UNITS, apply, source
from hypothesis import given, settings
from strategies import records, st

import wpinq
from wpinq.core.engines import local
from wpinq.core.engines.job import Job
from wpinq.core.engines.shuffle import stages
from wpinq.core.functions.function import Function
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.plan.node import Node, fingerprints, sources, steps
from wpinq.distributed import data, functions, plans, values
from wpinq.distributed.data import Lent, data_from_json, data_to_json
from wpinq.distributed.plans import plans_from_json, plans_to_json
from wpinq.errors import InternalError, PlanError

PLAIN = {
    "map: plain", "flat_map: nothing", "flat_map", "flat_map: at most", "flat_map: whole", "group_by",
    "group_by: reduce", "group_by: whole", "shave: by record", "shave: by number", "join: public, left",
    "join_rows: left", "join: made",
}  # fmt: skip
"""Those whose functions are plain Python."""
VIEWS = [("ann", "Home", 1, 2.5), ("bob", "news", 2, -1.0), ("bob", "Home", 3, 0.5)]
COLUMNS = {"user": str, "page": str, "n": int, "x": float}


def travelled(roots):
    """The plans after they were told, as JSON, to somebody who has the same records."""
    told = json.loads(json.dumps(plans_to_json(roots)))
    read = iter(dict.fromkeys(data for root in roots for data in sources(root)))
    return plans_from_json(told, lambda _: next(read))


def content(roots):
    job = Job(roots, sources(roots[0])[0].identity_key)
    return [array.tolist() for one in local.run(job) for array in one.content()]


@pytest.mark.parametrize("name", sorted((STEPS | UNITS).keys() - PLAIN))
@settings(deadline=None, max_examples=4)
@given(left=st.lists(records, max_size=12), right=st.lists(records, max_size=12))
def test_every_operator_travels_and_computes_the_same(name, left, right):
    root = fit_noise(apply(name, source("left", False, left), source("right", False, right))._node)
    (found,) = travelled([root])
    assert fingerprints(found)[found] == fingerprints(root)[root]
    assert [type(step) for step in steps(found)] == [type(step) for step in steps(root)]
    assert content([found]) == content([root])


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_plain_python_does_not_travel_and_the_step_is_named(name):
    root = apply(name, source("left", False), source("right", False))._node
    with pytest.raises(PlanError, match=r"cannot be told to another process.*Nothing was charged"):
        plans_to_json([root])


def views(**more):
    return wpinq.protect(VIEWS, budget=9, columns=COLUMNS, **more)


PEOPLE = wpinq.users("user", at_most=2, per=("page", 1))
KINDS = pl.DataFrame({"page": ["Home"], "kind": [None]}, {"page": pl.String, "kind": pl.String})
ASKED = {
    "sql": lambda v: v.map("lower(page) AS page, n + 1 AS m").filter("m > 2 and page like 'h%'"),
    "polars": lambda v: v.map([pl.col("page").str.to_lowercase(), (pl.col("n") * 3).alias("m")]),
    "nothing finite": lambda v: v.filter(pl.col("x") < 2.75),
    "traced": lambda v: v.map(lambda user, page, n: (user.upper().removeprefix("A"), page[1:3], n * 2 % 7 == 1)),
    "table": lambda v: v.join(KINDS, on="page"),
    "corner": lambda v: wpinq.degrees.cdf(v.map("page")),
    "sizes": lambda v: v.map("user").group_by("user", len),
    "largest": lambda v: v.intersect(v.filter("n > 1")),
}  # fmt: skip


@pytest.mark.parametrize("unit", [None, PEOPLE, wpinq.users("user", shared=True)], ids=["records", "sample", "share"])
@pytest.mark.parametrize("name", ASKED)
def test_expressions_functions_and_tables_travel(name, unit):
    v = views(unit=unit, where="n > 0", derive={"n": "n * 2"})
    root = fit_noise(ASKED[name](v)._node)
    (found,) = travelled([root])
    assert fingerprints(found)[found] == fingerprints(root)[root] is not None
    assert content([found]) == content([root])


class Travelling:
    """Runs plans in parts, after they were told."""

    def __init__(self):
        self.ran = 0

    def prove(self, data):
        data.reader.prove()

    def check(self, roots):
        plans_to_json(roots)

    def run(self, job):
        self.ran += len(job.roots)
        return stages.run_in_loop(Job(travelled(job.roots), job.key), 3)


QUESTIONS = {
    "sum": lambda v: v.sum("x", (0, 3), 1, by="page", keys=["Home"]).table(),
    "median": lambda v: v.median("x", (0, 3), 1).table(),
    "degrees": lambda v: wpinq.degrees.release(v.map("page"), epsilon=1).cdf.tolist(),
    "people": lambda v: wpinq.sql(
        "SELECT page, COUNT(DISTINCT user) AS c FROM views GROUP BY page", {"views": v}, epsilon=1, keys=["Home", "x"]
    ).table(),
    "numbers": lambda v: wpinq.sql(
        "SELECT AVG(n) AS m, COUNT(*) FILTER (WHERE x > 0) AS c FROM views",
        {"views": v},
        epsilon=1,
        bounds={"n": (0, 9)},
    ).table(),
    "histogram": lambda v: v.histogram("x", [0, 1, 2], 1).table(),
}


@pytest.mark.parametrize("unit", [None, wpinq.users("user", at_most=2)], ids=["records", "people"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_of_the_library_have_the_same_answers_elsewhere(name, unit, tmp_path):
    """A histogram that differs in one bit would be refused by its seal, and cost nothing again where it is the same."""
    ask, engine = QUESTIONS[name], Travelling()
    alone = ask(views(unit=unit, ledger=tmp_path / "ledger"))
    v = views(unit=unit, ledger=tmp_path / "ledger", engine=engine)
    spent = v.budget.spent
    assert repr(ask(v)) == repr(alone)
    assert engine.ran
    assert v.budget.spent == spent


def test_an_expression_that_json_cannot_write_does_not_travel():
    v = views().filter(pl.col("x") < float("inf"))
    with pytest.raises(PlanError, match="cannot be told"):
        plans_to_json([v._node])


def test_what_arrives_is_admitted_once_more():
    """Somebody in between could only ask for what is element-wise, of the plan that was meant."""
    told = json.loads(json.dumps(plans_to_json([views().map(pl.col("n") + 1)._node])))
    function = next(step["fields"]["function"]["function"] for step in told["steps"] if step["is"] == "Map")
    function["expressions"] = [json.loads(pl.col("n").max().meta.serialize(format="json"))]
    with pytest.raises(wpinq.UntraceableError, match="element-wise"):
        plans_from_json(told)
    function["expressions"] = [json.loads((pl.col("n") + 2).meta.serialize(format="json"))]
    assert plans_from_json(told)  # the fingerprint says what it says: whoever changes the one can change the other


def test_a_traced_function_that_means_something_else_is_refused():
    told = json.loads(json.dumps(plans_to_json([views().filter(lambda n: n > 1)._node])))
    (function,) = (step["fields"]["predicate"]["function"] for step in told["steps"] if step["is"] == "Filter")
    function["traced"]["tuple"][0]["fields"]["name"] = "ge"
    with pytest.raises(InternalError, match="means something else in another process"):
        plans_from_json(told)


def test_plans_that_mean_something_else_are_refused():
    told = json.loads(json.dumps(plans_to_json([views().map("page").distinct()._node])))
    (step,) = (step for step in told["steps"] if step["is"] == "Distinct")
    step["fields"]["at_most"] = {"fraction": "2/1"}
    with pytest.raises(InternalError, match="the plans mean something else"):
        plans_from_json(told)


def test_rule_37_what_is_told_holds_two_keys_and_no_secret(tmp_path):
    (tmp_path / "views.csv").write_text("user,page\nann,home\n")
    v = wpinq.protect(tmp_path / "views.csv", budget=1, unit=wpinq.users("user", at_most=2))
    (one,) = sources(v._node)
    text = json.dumps(plans_to_json([v.map("page")._node]))
    secret = one.ledger.secret
    assert secret._key.hex() not in text
    (told,) = json.loads(text)["data"]
    assert told["keys"] == [one.identity_key.hex(), one.sampling_key.hex()]
    for use in ("digest", "content", "recovery"):
        assert secret.derive(use, one.name).hex()[:32] not in text
    lent = data_from_json(told)
    assert isinstance(lent, Lent)
    assert (lent.identity_key, lent.sampling_key) == (one.identity_key, one.sampling_key)
    assert not any(key in repr(lent) for key in told["keys"])
    with pytest.raises(InternalError, match="asked for the ledger"):
        lent.ledger.charge()
    with pytest.raises(InternalError, match="asked for the ledger"):
        _ = lent.digest_key


def test_files_that_changed_are_refused(tmp_path):
    path = tmp_path / "views.csv"
    path.write_text("user,page\nann,home\n")
    (one,) = sources(wpinq.protect(path, budget=1)._node)
    told = data_to_json(one)
    path.write_text("user,page\nann,home\nbob,news\n")
    with pytest.raises(wpinq.ChangedError, match="not the same for all processes"):
        data_from_json(told)


@pytest.mark.parametrize(
    ("columns", "words", "text"),
    [
        (None, {}, "user,page\nann,home\n"),
        (["page"], {}, "user,page\nann,home\n"),
        ({"user": None, "page": "str"}, {}, "user,page\nann,home\n"),
        ({"n": int}, {"separator": ";"}, "user;n\nann;7\n"),
        (("a", "b"), {"header": False}, "ann,home\n"),
        ({"time": "instant"}, {"tz": "Europe/Amsterdam"}, "user,time\nann,2026-07-01T12:00:00Z\n"),
    ],
)
def test_files_are_opened_alike(tmp_path, monkeypatch, columns, words, text):
    (tmp_path / "views.csv").write_text(text)
    monkeypatch.chdir(tmp_path)
    (one,) = sources(wpinq.protect("views.csv", budget=1, columns=columns, **words)._node)
    lent = data_from_json(json.loads(json.dumps(data_to_json(one))))
    assert lent.reader.schema == one.reader.schema
    assert lent.covered == one.covered
    names = one.reader.schema.names
    assert pl.concat(lent.batches(names)).equals(pl.concat(one.batches(names)))


def test_records_in_memory_and_databases_are_read_by_the_first_process():
    (one,) = sources(views()._node)
    assert not data.travels(one)
    lent = data_from_json(json.loads(json.dumps(data_to_json(one))))
    assert lent.covered == one.covered
    with pytest.raises(InternalError, match="was not sent"):
        list(lent.batches(["user"]))


def test_live_sources_stay_where_they_are():
    live = wpinq.live({"user": str}, budget=1)
    with pytest.raises(PlanError, match="epoch by epoch"):
        plans_to_json([live.map("user")._node])


# ---- a new step or function must say whether it travels

STAY = {
    "Binary", "Linear", "Unary", "Where", "ByUnit", "Outputs", "Slicing",  # forms, which are no steps
    "FirstOutputs", "FlatMap", "ShaveBy",  # functions of plain Python
    "First", "Slice", "Within", "Tap",  # of live sources, and of a run of this process alone
}  # fmt: skip


def subclasses(kind):
    for one in kind.__subclasses__():
        yield one
        yield from subclasses(one)


def test_every_step_travels_or_is_named_as_one_that_does_not():
    for module in pkgutil.walk_packages(wpinq.__path__, "wpinq."):
        if module.name.startswith(("wpinq.core.operators", "wpinq.aggregates", "wpinq.degrees", "wpinq.core.runs")):
            importlib.import_module(module.name)
    own = {one for one in subclasses(Node) if one.__module__.startswith("wpinq.")}
    assert {one.__name__ for one in own} == set(plans.STEPS) | STAY
    assert {one for one in own if one.__name__ in plans.STEPS} == {plans.step_named(name) for name in plans.STEPS}
    known = {"Plain", "Many", "Thicknesses", "Columnar", "Columnwise", "Expressions", "CornerBin", "Rows"}
    assert {one.__name__ for one in subclasses(Function) if one.__module__.startswith("wpinq.")} == known
    assert tuple(field.name for field in dataclasses.fields(Function)) == functions.FIELDS
    for name, home in values.PLAIN.items():
        assert dataclasses.is_dataclass(getattr(importlib.import_module(home), name))


@pytest.mark.parametrize("given", [[1], {"is": "Map"}, {"step": None}, {"of": "os.system", "fields": {}}, 1.5])
def test_nothing_else_is_made_of_what_arrives(given):
    with pytest.raises(InternalError, match="what no plan can hold"):
        values.from_json(given, plans_other)


def plans_other(given):
    raise InternalError("a plan holds what no plan can hold; please report this.")
