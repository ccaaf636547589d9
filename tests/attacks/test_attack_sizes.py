"""A short question stands for no large plan: sizes are counted before anything is made, and steps are computed once."""

import msgspec
import polars as pl
import pytest
from attacks.fuzz.lengths import nodes
from depth import deep, thin

import wpinq
from wpinq import graphs
from wpinq.apps.remote import grammar
from wpinq.apps.serve.config import Limits
from wpinq.apps.serve.plans import collection, insist_on_limits
from wpinq.core.engines.linear import Linear, _few
from wpinq.core.functions.bind import bind
from wpinq.core.functions.expressions import Expressions
from wpinq.core.functions.sql.bind import columns, parsed, translator
from wpinq.core.functions.traced.columnar import Columnar
from wpinq.core.functions.traced.expression import Expression
from wpinq.core.functions.tree import question_size
from wpinq.core.plan.node import Node
from wpinq.core.plan.stability import sensitivities
from wpinq.core.pricing.question_limits import check_gain
from wpinq.core.records.batch import Batch
from wpinq.core.records.schema import Kind, Schema
from wpinq.errors import PlanError
from wpinq.query import quoted

COLUMNS = {"t": "text", "n": "int", "x": "float"}


def views(records=()):
    return wpinq.protect(list(records), budget=10**9, columns=COLUMNS)


def nested(shape, times, inner):
    for _ in range(times):
        inner = shape.format(inner)
    return inner


@pytest.mark.parametrize(
    ("shape", "inner"),
    [("nullif({}, 'a')", "t"), ("greatest({}, 'a')", "t"), ("({}) % 7", "n"), ("({}) / 7", "n"), ("mod({}, 3)", "n"),
     ("split_part({}, 'a', 1)", "t"), ("CASE {} WHEN 'a' THEN t WHEN 'b' THEN 'c' END", "t"), ("sqrt({})", "x")],
)  # fmt: skip
def test_what_doubles_with_each_level_is_refused_in_the_words_of_the_query(shape, inner):
    with pytest.raises(PlanError, match=r"sql: .* stands for an expression of [0-9,]+ nodes, and the most is 5,000"):
        nested_in = nested(shape, 16, inner)
        quoted(f"SELECT COUNT(*) AS c FROM v WHERE {nested_in} IS NULL", {"v": views()}, epsilon=1)


@thin(3)
@pytest.mark.parametrize("text", ["- " * 40 + "n = 3", "n / 2 / 2 / 2 / 2 / 2 / 2 = 1", "x" + " / 2.5" * 30 + " = 1",
                                  "CASE t " + "".join(f"WHEN '{one}' THEN 'p' " for one in range(300)) + "END = 'p'",
                                  "greatest(" + ", ".join(f"'{one}'" for one in range(20)) + ", t) = 'a'"])  # fmt: skip
def test_what_is_merely_long_is_answered(text):
    assert quoted(f"SELECT COUNT(*) AS c FROM v WHERE {text}", {"v": views()}, epsilon=1).quotes


def test_a_chain_whose_parts_lie_one_in_the_other_is_refused_where_it_would_take_too_long():
    text = "CASE t " + "".join(f"WHEN '{one}' THEN 'p' " for one in range(500)) + "END = 'p'"
    with pytest.raises(PlanError, match="sql: the SQL text is nested too deeply; write it flatter"):
        quoted(f"SELECT COUNT(*) AS c FROM v WHERE {text}", {"v": views()}, epsilon=1)


def test_a_size_is_the_number_of_nodes_that_are_made():
    schema = Schema.of(t=Kind.TEXT, n=Kind.INT, x=Kind.FLOAT)
    with question_size():
        for text in ("nullif(t, 'a')", "(n % 7) / 3", "greatest(n, n + 1, x)", "x / 3 / n", "- (- (- (n)))"):
            term = translator(columns(schema, "map"), "map").term(parsed(text, "map")[0])
            assert term.size == nodes(term.value.expr), text


@deep
def test_many_expressions_of_one_question_are_counted_together():
    part = nested("nullif({}, 'a')", 8, "t")
    many = ", ".join(f"COUNT({part[:-4]}'{one}'))" for one in range(100))
    with pytest.raises(PlanError, match="all expressions together have more than 20,000 nodes"):
        quoted(f"SELECT {many} FROM v", {"v": views()}, epsilon=1)


def test_names_that_stand_for_long_expressions_are_counted():
    long = "n" + " + n" * 50
    query = f"SELECT {long} AS a, COUNT(*) FROM v GROUP BY 1 ORDER BY {', '.join(['a + a + a + a'] * 200)}"
    with pytest.raises(PlanError, match="all expressions together"):
        quoted(query, {"v": views()}, epsilon=1, keys=[1])


def test_a_product_of_sets_of_keys_is_counted_before_it_is_made():
    cubes = ", ".join(["CUBE (t, n, x, t || 'a')"] * 30)
    with pytest.raises(PlanError, match="sets of keys, and 64 are the most"):
        quoted(f"SELECT COUNT(*) FROM v GROUP BY {cubes}", {"v": views()}, epsilon=1, keys=[])


def test_a_function_that_grows_runs_plainly_and_is_not_sent():
    def sliced(t):
        t = t[1:][1:][1:][1:][1:][1:][1:][1:][1:][1:][1:][1:][1:][1:][1:][1:]
        return t[1:][1:][1:][1:][1:][1:][1:][1:][1:][1:][1:][1:][1:][1:][1:][1:]

    schema = Schema.of(t=Kind.TEXT)
    assert not isinstance(bind(sliced, schema, "map"), Columnar)
    assert isinstance(bind(lambda t: t[1:][1:], schema, "map"), Columnar)
    node = Expression.of_column("t", Kind.TEXT)
    with pytest.raises(PlanError, match="map: slice stands for an expression of"):
        for _ in range(40):
            node = Expression.of_rule("slice", (node,), (1, None), "map")


def test_a_plan_that_is_sent_names_the_step_that_is_too_large():
    x = {"is": "column", "name": "t"}
    for _ in range(10):
        x = {"is": "do", "name": "slice", "of": [x], "options": [1, None]}
    traced = {"is": "traced", "reads": ["t"], "names": ["p"], "values": [x]}
    steps = [{"do": "table", "name": "v"}, {"do": "map", "of": 0, "function": traced}]
    plan = msgspec.convert(steps, list[grammar.AnyStep])
    with pytest.raises(PlanError, match=r"plan, step 1 \(map\): slice stands for an expression of [0-9,]+ nodes"):
        collection(plan, {"v": views()}, Limits())


def doubled(times):
    parts = ["t0 AS (SELECT t FROM v)"]
    parts += [
        f"t{i} AS (SELECT t || '' AS t FROM t{i - 1} UNION ALL SELECT t FROM t{i - 1})" for i in range(1, times + 1)
    ]
    return f"WITH {', '.join(parts)} SELECT COUNT(*) AS c FROM t{times}"


def test_a_step_that_is_read_twice_is_computed_once(monkeypatch):
    passes, records = [], []
    push, apply = Linear.push, Expressions.apply

    def counted(self, frame, keep):
        records.append(frame.height)
        return apply(self, frame, keep)

    def pushed(self, batch):
        passes.append(1)
        return push(self, batch)

    for times in (6, 12):
        question = quoted(doubled(times), {"v": views([("a", 1, 1.0)] * 8)}, epsilon="0.001")
        monkeypatch.setattr(Expressions, "apply", counted)
        monkeypatch.setattr(Linear, "push", pushed)
        records.clear()
        assert question.charge().rows
        monkeypatch.undo()
        assert len(passes) < 10 and len(records) <= 4 * times and sum(records) <= 32 * times


def test_a_plan_of_sums_of_sums_is_priced_by_its_steps(monkeypatch):
    made = views().map("t, n")
    looked = []
    schema = Node.__dict__["schema"].func
    for _ in range(60):
        made = made.map("t, n").concat(made).semijoin(made, on="t")
    monkeypatch.setattr(Node.__dict__["schema"], "func", lambda self: looked.append(self) or schema(self))
    assert sensitivities(made._node)
    assert made._node.resolution and len(looked) <= len(set(map(id, looked)))


def test_limits_of_steps_and_gain_hold_for_sql():
    v = views()
    with pytest.raises(PlanError, match=r"sql: the query makes [0-9]+ steps; at most 40 here"):
        quoted(doubled(30), {"v": v}, epsilon=1, insist=lambda asked: insist_on_limits(asked, Limits()))
    with pytest.raises(PlanError, match="sql: one unit could move it by more than 1000 times its bound"):
        quoted(doubled(30), {"v": v}, epsilon=1, insist=lambda asked: insist_on_limits(asked, Limits(steps=1000)))
    assert quoted(doubled(5), {"v": v}, epsilon=1, insist=lambda asked: insist_on_limits(asked, Limits())).quotes


def test_ways_through_parts_are_counted_before_they_are_told_apart():
    made = views()
    for _ in range(40):
        made = made.partition("t", ["a", "b"])["a"].concat(made)
    with pytest.raises(PlanError, match="plan: one unit could move it by more than 1000 times"):
        check_gain(made._node, Limits().gain, "plan")


def test_what_is_made_on_the_way_counts_where_the_end_moves_by_little():
    unit = wpinq.users("t", at_most=1000)
    made = wpinq.protect([], 1, columns={"t": str, "n": int}, unit=unit, version="1")
    rows = made.join_rows(made, on="t").join_rows(made, on="t")
    for end in (rows.limit("t"), rows.map("t").distinct()):
        assert set(sensitivities(end._node).values()) == {1}
        with pytest.raises(PlanError, match="plan: one unit could move it by more than 1000 times"):
            check_gain(end._node, Limits().gain, "plan")
    check_gain(made.join_rows(made, on="t").limit("t")._node, Limits().gain, "plan")


def test_batches_of_a_step_are_added_up_and_no_record_is_lost():
    schema = Schema.of(n=Kind.INT)
    batch = Batch.of(pl.DataFrame({"n": [1, 1, 2]}), schema)
    (one,) = _few([batch, batch, batch])
    assert sorted(one.frame.rows()) == [(1, 6), (2, 3)]
    assert _few([batch, batch]) == [batch, batch]


def test_degrees_that_noise_leaves_empty_are_answered():
    edges = wpinq.protect([], budget=2000, columns={"u": str, "v": str})
    for more in ("joint_degrees", "triangles_by_degree"):
        made = graphs.measure(edges, 900, shares={"degrees": 1, "joint": 1, more: 1})
        assert len(made.joint_degrees.degrees if more == "joint_degrees" else made.triangles_by_degree.degrees) == 0


def test_a_part_that_the_parser_cannot_write_is_no_error():
    query = "SELECT COUNT(DISTINCT (t, n)) FILTER (WHERE t ~ 'a+') AS c FROM v"
    assert quoted(query, {"v": views()}, epsilon=1).quotes
