"""UNION ALL of answers through every door: the library, the command, the shell, the server, a release file.

Each door gives the rows of the library, says what they cost before it charges, and charges that. What one SELECT alone
takes is refused in one way, before a charge.
"""

import inspect
import json
from fractions import Fraction

import polars as pl
import pytest
from serving import CONFIG, serving, written

import wpinq
from tests.publish.test_release import release, wrote
from wpinq.apps.cli import main
from wpinq.apps.cli.questions import COSTS, read
from wpinq.apps.cli.sql import sql as command
from wpinq.apps.publish.file.declared import Question
from wpinq.apps.remote.wire import Sql
from wpinq.core.ledger import Ledger
from wpinq.core.ledger.rows.secret import Secret
from wpinq.errors import BudgetError, PlanError
from wpinq.query import prepare, quoted
from wpinq.query.select.clauses import SELECTS, branches

ROWS = [(f"u{i % 90}", f"/p{i % 3}") for i in range(600)]
QUERY = (
    "SELECT page, COUNT(*) AS c FROM views WHERE page <> '/p2' GROUP BY page "
    "UNION ALL SELECT 'all', COUNT(*) FROM views UNION ALL SELECT 'users', COUNT(DISTINCT user) FROM views"
)
TRUTH = [("/p0", 200), ("/p1", 200), ("all", 600), ("users", 90)]
LOUD = 3000


def views(**words):
    return wpinq.protect(ROWS, budget=10000, delta="0.1", columns={"user": str, "page": str}, name="views",
                         secret=Secret(bytes(range(32))), **words)  # fmt: skip


def spent(table):
    return table._node.data.ledger.spent()


def test_quotes_and_explain_say_what_is_charged():
    table = views()
    quote = quoted(QUERY, {"views": table}, epsilon=LOUD, delta="3e-4")
    told = wpinq.sql(f"EXPLAIN {QUERY}", {"views": table}, epsilon=LOUD, delta="3e-4")
    assert spent(table) == (0, 0)
    assert [row[0] for row in told.rows] == [
        "SELECT 1: COUNT(*)", "SELECT 2: COUNT(*)", "SELECT 3: COUNT(DISTINCT user)",
    ]  # fmt: skip
    assert quote.row_names == ["page"]
    assert [noise.column[-8:] for noise in quote.expected] == ["SELECT 1", "SELECT 2", "SELECT 3"]
    answer = quote.charge()
    assert sorted(answer.rows) == TRUTH
    assert spent(table)[0] == sum(row[told.columns.index("epsilon")] for row in told.rows) == LOUD
    assert spent(table)[1] == sum(Fraction(part.delta) for part in quote.quotes) == quote.lost == Fraction("1e-4")
    assert answer.about["threshold"] == quote.threshold
    assert wpinq.sql(QUERY, {"views": table}, epsilon=LOUD, delta="3e-4").rows == answer.rows
    assert spent(table)[0] == LOUD, "asked again it is free"


def test_within_holds_for_each_select():
    table = views()
    quote = quoted(QUERY, {"views": table}, within=5, delta="3e-4")
    assert all(half <= 5 for _, _, half in quote.lines)


@pytest.mark.parametrize("words", [{"keys": ["/p0"]}, {"loss": 1}, {"at_most": "auto"}])
def test_what_is_of_one_select_is_refused_in_one_way(words):
    table = views(unit=wpinq.users("user", at_most=20))
    with pytest.raises(PlanError, match="are of one SELECT"):
        wpinq.sql(QUERY, {"views": table}, epsilon=1, delta="3e-4", **words)
    assert spent(table) == (0, 0)


def test_a_union_in_a_subquery_is_one_select_and_takes_keys():
    """It was refused with keys, as if its answers were united."""
    query = "SELECT page, COUNT(*) FROM (SELECT page FROM views UNION ALL SELECT page FROM views) AS t GROUP BY page"
    assert branches(query) is None
    assert wpinq.sql(query, {"views": views()}, epsilon=LOUD, keys=["/p0", "no"]).rows == (("/p0", 400), ("no", 0))


def test_many_selects_are_refused_before_they_are_planned():
    text = " UNION ALL ".join(["SELECT COUNT(*) FROM views"] * (SELECTS + 1))
    for query in (text, text + " UNION ALL SELECT COUNT(*) FROM views" * 900):
        with pytest.raises(PlanError, match=r"at most 64 SELECTs|nested too deeply|more than"):
            quoted(query, {"views": views()}, epsilon=1)
    with pytest.raises(PlanError, match="are of one SELECT"):
        prepare(QUERY, {"views": views()})


def test_google_terms_are_divided_and_notes_stay():
    table = views()
    query = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=4, max_groups_contributed=2) COUNT(*) AS c FROM views"
    answer = wpinq.sql(f"{query} UNION ALL SELECT COUNT(DISTINCT page) FROM views", {"views": table})
    assert spent(table)[0] == 4
    assert any("max_groups_contributed" in clause for clause in answer.bias)


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(ROWS, schema=["user", "page"], orient="row").write_csv("views.csv")
    common = ["sql", QUERY, "--from", "views=views.csv", "--epsilon", str(LOUD), "--budget", "9000"]
    assert main([*common, "--delta", "3e-4", "--explain"]) == 0
    assert capsys.readouterr().out.count("epsilon 1000") == 3
    assert not (tmp_path / "views.csv.ledger").exists()
    assert main([*common, "--delta", "3e-4", "--json", "out.json"]) == 0
    content = json.loads((tmp_path / "out.json").read_text())
    assert sorted(map(tuple, content["rows"])) == TRUTH
    assert Ledger.existing(tmp_path / "views.csv.ledger").spent()[0] == LOUD
    (tmp_path / "keys.csv").write_text("/p0\n")
    assert main([*common, "--keys", "keys.csv"]) == 2
    assert "are of one SELECT" in capsys.readouterr().err
    assert main([*common]) == 2
    assert "--delta 1e-6" in capsys.readouterr().err


def test_the_shell():
    table = views()
    question = read(f"{QUERY} epsilon {LOUD} delta 3e-4", table)
    assert spent(table) == (0, 0)
    assert (question.price.cost, question.price.threshold) == ({"epsilon": str(LOUD), "delta": "0.0001"}, 2)
    assert sorted(question.charge().rows) == TRUTH
    assert spent(table)[0] == LOUD


def test_the_server(tmp_path):
    query = QUERY.replace("<> '/p2' GROUP", "IN ('p0', 'p1') GROUP")
    with serving(written(tmp_path, CONFIG + '\n[limits]\ndelta = "1e-4"\n')) as site:
        token, ledger = site.token("unions"), Ledger.existing(site.place / "ledger")
        ledger.cap("unions", 10, "1e-5")
        before = ledger.spent()[0]
        body = {"query": query, "epsilon": 3, "delta": "3e-6", "name": "union"}
        price = site.ask(token, "POST", "/api/sql", body).body["price"]
        told = site.ask(token, "POST", "/api/sql", {**body, "query": f"EXPLAIN {query}", "dry": False}).body
        assert (price["cost"], ledger.spent()[0]) == ({"epsilon": "3", "delta": "0.000001"}, before)
        assert len(told["rows"]) == len(price["expected"]) == 3
        found = site.ask(token, "POST", "/api/sql", {**body, "dry": False})
        assert (found.status, ledger.spent()[0]) == (200, before + 3)
        here = wpinq.sql(query, {"views": site.catalogue.data["views"].views}, epsilon=3, delta="3e-6", name="union")
        assert [list(row) for row in here.rows] == found.body["rows"]
        assert ledger.spent()[0] == before + 3
        refused = site.ask(token, "POST", "/api/sql", {**body, "delta": None, "keys": ["p0"]})
        assert refused.status == 422
        assert "are of one SELECT" in refused.raw.decode()


def test_a_server_takes_gaussian_noise(tmp_path):
    """It took it of plans alone. A ledger of rho charges both alike."""
    config = CONFIG.replace("budget = 1000", "rho = 500")
    query = "SELECT COUNT(*) AS c FROM views UNION ALL SELECT COUNT(DISTINCT user) FROM views"
    with serving(written(tmp_path, config)) as site:
        token, ledger = site.token("gauss"), Ledger.existing(site.place / "ledger")
        ledger.cap("gauss", 10)
        before = ledger.remaining()
        server = wpinq.connect(site.url, token)
        quote = server.quote_sql(query, rho=2, mechanism="gaussian")
        assert repr(quote).count("gaussian noise of scale") == 2
        answer = server.sql(query, rho=2, mechanism="gaussian", name="gaussian")
        here = wpinq.sql(
            query, {"views": site.catalogue.data["views"].views}, rho=2, mechanism="gaussian", name="gaussian"
        )
        assert [tuple(row) for row in answer.rows] == list(here.rows)
        assert before - ledger.remaining() == 2
        with pytest.raises(BudgetError):
            server.sql(query, rho=9, mechanism="gaussian", name="more than the cap")
        assert before - ledger.remaining() == 2


def test_a_release(tmp_path):
    wrote(tmp_path, 21)
    asked = {"name": "union", "sql": QUERY.replace("views", "data"), "epsilon": LOUD, "delta": "3e-6", "plot": False}
    budget = {"epsilon": LOUD, "delta": "1e-5"}
    site = release(tmp_path, question=[asked], budget=budget)
    plan = site.plan()
    assert (plan.epsilon, len(plan.questions[0].expected)) == (LOUD, 3)
    site.run()
    table = pl.read_csv(tmp_path / "out" / "2026-11-21" / "union.csv").sort("page")
    assert table.columns == ["page", "c", "c_low", "c_high"]
    assert table["page"].to_list() == ["/p0", "/p1", "/p3", "/p4", "/p5", "all", "users"]
    assert table.filter(pl.col("page") == "all")["c"].item() == 270
    assert site.verify("2026-11-21") == []
    nameless = {
        **asked,
        "sql": "SELECT COUNT(*) FROM data UNION ALL SELECT COUNT(DISTINCT user) FROM data",
        "delta": None,
    }
    with pytest.raises(PlanError, match="no column names the rows"):
        release(tmp_path, question=[nameless], budget=budget).plan()


LEFT_OUT = {
    "server": {"analyst": "its token", "tables": "the curator's", "per": "the curator's",
               "loss": "a second table, for which its answer has no room"},
    "command": {"tables": "--from and --public", "loss": "--show-loss",
                "within": "a new ledger's delta follows from epsilon"},
    "shell": {"analyst": "its user is the curator", "tables": "views alone", "loss": "it shows one table",
              "per": "its own --per", "at_most": "its own --at-most", "name": "a question is asked once"},
    "release": {"analyst": "the release", "tables": "its data", "query": "its sql", "per": "its unit's"},
}  # fmt: skip
"""What doors do not take of what `wpinq.sql` takes, and why."""


def test_each_door_takes_what_the_library_takes_or_has_a_reason():
    every = set(inspect.signature(wpinq.sql).parameters)
    doors = {
        "server": set(Sql.__struct_fields__),
        "command": set(inspect.signature(command).parameters),
        "shell": {"query", "bounds", "keys", *COSTS},
        "release": set(Question.__struct_fields__),
    }
    assert {door: every - taken for door, taken in doors.items()} == {door: set(why) for door, why in LEFT_OUT.items()}
