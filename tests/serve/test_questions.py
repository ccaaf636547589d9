"""Questions over HTTP: priced before they are asked, charged once under two caps, free when they are asked again."""

import threading
from fractions import Fraction

import pytest
from serving import CONFIG, serving, written

import wpinq
from wpinq.apps.remote.pricing import priced_sql
from wpinq.apps.serve import questions
from wpinq.core.ledger import Ledger
from wpinq.query import quoted

COUNT = "SELECT page, COUNT(*) AS c FROM views GROUP BY page"
PAGES = ["p0", "p1", "nope"]


def spent(site):
    return Ledger.existing(site.place / "ledger").spent()[0]


def question(epsilon=1, **more):
    return {"query": COUNT, "keys": PAGES, "epsilon": epsilon, **more}


def test_the_quote_is_the_charge_and_asking_again_is_free_and_the_same(site):
    token, before = site.token("quotes", 10), spent(site)
    price = site.ask(token, "POST", "/api/sql", question(name="first")).body["price"]
    assert price["cost"] == {"epsilon": "1", "delta": "0"} and price["free"] is False and price["more"] == 9
    assert price["now"][0]["own"] == "10" and price["after"][0]["own"] == "9" and spent(site) == before
    found = site.ask(token, "POST", "/api/sql", question(name="first", dry=False))
    assert found.status == 200 and found.body["columns"] == ["page", "c"]
    assert [row[0] for row in found.body["rows"]] == PAGES and spent(site) == before + 1
    low, high = found.body["intervals"][0][1]
    assert (high - low) / 2 == price["expected"][0]["half_width"] and price["expected"][0]["column"] == "c"
    again = site.ask(token, "POST", "/api/sql", question(name="first", dry=False))
    assert again.raw == found.raw and spent(site) == before + 1
    assert site.ask(token, "POST", "/api/sql", question(name="first")).body["price"]["free"] is True
    views = site.catalogue.data["views"].views
    here = wpinq.sql(COUNT, {"views": views}, epsilon=1, keys=PAGES, name="first")
    assert [list(row) for row in here.rows] == found.body["rows"] and spent(site) == before + 1


def test_explain_is_told_its_price_and_charges_nothing(site):
    token, before = site.token("explains", 1), spent(site)
    told = site.ask(token, "POST", "/api/sql", {**question(dry=False), "query": f"EXPLAIN {COUNT}"}).body
    assert told["columns"][:2] == ["measurement", "one unit moves"]
    assert told["rows"][0][0] == "COUNT(*)"
    assert told["price"]["cost"]["epsilon"] == "1"
    assert spent(site) == before


def test_an_analyst_looks_at_less_of_each_person_and_never_at_more(site):
    """The curator's bound is 4; the noise is of the question's own."""
    token, before = site.token("bounds", 10), spent(site)
    halves = [site.ask(token, "POST", "/api/sql", question(**more)).body["price"]["expected"][0]["half_width"]
              for more in ({}, {"at_most": 4}, {"at_most": 1})]  # fmt: skip
    assert halves[0] == halves[1] > 3 * halves[2] > 0
    for odd in (5, 0, -1):
        refused = site.ask(token, "POST", "/api/sql", question(at_most=odd))
        assert refused.status == 422 and "at_most" in refused.raw.decode()
    assert site.ask(token, "POST", "/api/sql", question(at_most="1")).status == 422
    assert spent(site) == before


def test_a_price_tells_the_noise_of_the_answer_in_its_own_unit(site):
    token = site.token("unit", 10)
    sums = {"query": "SELECT SUM(size) AS s FROM views", "epsilon": 1}
    (told,) = site.ask(token, "POST", "/api/sql", sums).body["price"]["expected"]
    (((low, high),),) = site.ask(token, "POST", "/api/sql", {**sums, "dry": False}).body["intervals"]
    assert told["half_width"] == pytest.approx((high - low) / 2) and told["half_width"] > 2 * told["scale"] == 800
    for call in ("AVG(size)", "STDDEV(size)", "MEDIAN(size)"):  # how far noise moves these depends on them
        asked = {"query": f"SELECT {call} AS s FROM views", "epsilon": 1}
        (told,) = site.ask(token, "POST", "/api/sql", asked).body["price"]["expected"]
        assert told["half_width"] is None, call


def test_bounds_of_a_table_are_of_its_columns_alone(tmp_path):
    """Those of another table refuse no question, and clamp no column of the same name."""
    other = """
[data.sales]
source = "sales.csv"
ledger = "ledger.sales"
budget = 1000
columns = { size = "int" }
bounds = { size = [0, 10] }

[data.plain]
source = "plain.csv"
ledger = "ledger.plain"
budget = 1000
columns = { shop = "str" }
"""
    place = written(tmp_path, CONFIG.replace("[fit.degrees]", other + "[fit.degrees]"))
    (place / "sales.csv").write_text("size\n" + "7\n" * 50)
    (place / "plain.csv").write_text("shop\n" + "a\n" * 50)
    with serving(place) as site:
        token = site.token("ann", 500, ("views", "sales", "plain"))
        for name in ("sales", "plain"):
            Ledger.existing(place / f"ledger.{name}").cap("ann", 500)

        def noise(query):
            asked = {"query": query, "epsilon": 1}
            return site.ask(token, "POST", "/api/sql", asked).body["price"]["expected"][0]["half_width"]

        assert site.ask(token, "POST", "/api/sql", {"query": "SELECT COUNT(*) FROM plain", "epsilon": 1}).status == 200
        few, many = noise("SELECT SUM(size) FROM sales"), noise("SELECT SUM(size) FROM views")
        assert many == pytest.approx(40 * few, rel=0.01)  # up to 4 records of a person, each up to 100, not up to 10
        for query in ("SELECT SUM(size) FROM Sales AS s", "SELECT SUM(v) FROM (SELECT size AS v FROM sales) AS s"):
            assert noise(query) == few
        asked = {"query": "SELECT SUM(size) AS s FROM sales", "epsilon": 100, "dry": False}
        assert site.ask(token, "POST", "/api/sql", asked).body["rows"][0][0] == pytest.approx(350, abs=5)


def test_where_the_curator_keeps_no_number_an_analyst_asks_for_none():
    """Of people who share a weight no number of records is the curator's bound."""
    shared = wpinq.protect([], 1, columns={"user": str}, unit=wpinq.users("user", shared=True))
    few = wpinq.protect([], 1, columns={"user": str}, unit=wpinq.users("user", at_most=4))
    assert questions._bounded({"few": few, "shared": shared}, None)["shared"] is shared
    with pytest.raises(wpinq.PlanError, match="allows 0 records"):
        questions._bounded({"few": few, "shared": shared}, 1)


def test_without_a_curators_bound_an_analyst_gives_any(site):
    """Noise grows with the question's own bound, so there is none to keep to."""
    every = wpinq.protect([], 1, columns={"user": str}, unit=wpinq.users("user"))
    few = wpinq.protect([], 1, columns={"user": str}, unit=wpinq.users("user", at_most=4))
    assert questions._bounded({"every": every}, 50)["every"]._node.unit.at_most == 50
    with pytest.raises(wpinq.PlanError, match="allows 4 records"):
        questions._bounded({"few": few, "every": every}, 5)


def test_dry_is_what_is_done_where_nothing_is_said(site):
    token, before = site.token("dry", 1), spent(site)
    assert site.ask(token, "POST", "/api/sql", question("1/4")).body["price"]["cost"]["epsilon"] == "0.25"
    assert spent(site) == before


def test_a_cap_binds_and_nothing_is_charged_beyond_it(site):
    token, before = site.token("small", Fraction(1, 2)), spent(site)
    price = site.ask(token, "POST", "/api/sql", question("0.4", name="s")).body["price"]
    assert price["more"] == 0
    assert site.ask(token, "POST", "/api/sql", question("0.4", name="s", dry=False)).status == 200
    refused = site.ask(token, "POST", "/api/sql", question("0.2", name="s2", dry=False))
    assert refused.status == 409 and "0.1 is left of the cap" in refused.body["error"]["message"]
    assert spent(site) == before + Fraction(4, 10)
    assert site.ask(token, "POST", "/api/sql", question("0.1", name="s3", dry=False)).status == 200
    (left,) = site.ask(token, "GET", "/api/budget").body["data"]
    assert left["cap"] == "0.5" and left["own"] == "0" and left["kind"] == "epsilon"


def test_an_analyst_without_a_cap_asks_nothing(site):
    token, before = site.token("capless"), spent(site)
    for dry in (True, False):
        refused = site.ask(token, "POST", "/api/sql", question(dry=dry))
        assert refused.status == 409 and "no cap" in refused.body["error"]["message"]
    assert spent(site) == before


def test_nothing_is_read_of_a_question_of_an_analyst_without_a_cap(site, monkeypatch):
    def read(*_, **__):
        raise AssertionError("it was read")

    for module, name in ((questions, "quoted"), (questions, "named_tables"), (questions, "collection")):
        monkeypatch.setattr(module, name, read)
    token = site.token("capless2")
    plan = {"plan": [{"do": "table", "name": "views"}], "epsilon": 1}
    for query in ("EXPLAIN " + COUNT, COUNT, "no SQL"):
        assert site.ask(token, "POST", "/api/sql", question(query=query)).status == 409
    assert site.ask(token, "POST", "/api/measure", plan).status == 409


def test_a_cap_of_delta_binds_too_and_without_one_nothing_is_published(tmp_path):
    with serving(written(tmp_path, CONFIG + '\n[limits]\ndelta = "1e-4"\n')) as site:
        token, boss = site.token("ann", 100), site.token("boss", curator=True)

        def ask(name, **more):
            asked = {"query": COUNT, "epsilon": 1, "delta": "1e-4", "name": name, **more}
            return site.ask(token, "POST", "/api/sql", asked)

        for dry in (True, False):
            refused = ask("1", dry=dry)
            assert refused.status == 409 and "no cap of delta" in refused.body["error"]["message"]
        capped = {"data": "views", "analyst": "ann", "cap": 100, "delta": "2.5e-4"}
        assert site.ask(boss, "PUT", "/api/caps", capped).body["delta_own"] == "0.00025"
        assert ask("1").body["price"]["more"] == 1
        assert [ask(name, dry=False).status for name in ("1", "2", "2", "3")] == [200, 200, 200, 409]
        price = ask("3").body["price"]
        assert (price["fits"], price["more"], price["now"][0]["delta_own"]) == (False, 0, "0.00005")
        (told,) = site.ask(boss, "GET", "/api/ledger").body["data"]
        assert told["caps"] == [{"analyst": "ann", "cap": "100", "spent": "2", "delta_cap": "0.00025",
                                 "delta_spent": "0.0002"}]  # fmt: skip
        assert Ledger.existing(tmp_path / "ledger").spent() == (3 + 2, Fraction(2, 10**4))


def test_two_tokens_of_one_analyst_share_one_cap(site):
    one, two = site.token("twice", 1), site.token("twice")
    assert site.ask(one, "POST", "/api/sql", question("0.8", name="t1", dry=False)).status == 200
    assert site.ask(two, "POST", "/api/sql", question("0.8", name="t2", dry=False)).status == 409


def test_analysts_who_collude_do_not_pass_the_common_cap_however_they_race(tmp_path):
    """Eight analysts, each allowed 1 of a budget of 3 + 2 spent by scripts, ask at once over two servers."""
    place = written(tmp_path, CONFIG.replace("budget = 1000", "budget = 5"))
    with serving(place) as first, serving(place) as second:
        tokens = [first.token(f"ann {number}", 1) for number in range(8)]
        found = []

        def ask(number):
            for name in ("a", "b"):
                asked = question("0.6", name=f"{number} {name}", dry=False)
                found.append((first, second)[number % 2].ask(tokens[number], "POST", "/api/sql", asked).status)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(found) <= {200, 409, 429} and found.count(200) == 3  # 3 * 0.6 fit in the 2 that scripts left
        assert Ledger.existing(place / "ledger").spent()[0] == Fraction(3) + Fraction(18, 10)
        assert len(Ledger.existing(place / "ledger").entries()) > 0


@pytest.mark.parametrize(
    "body",
    [
        {"query": COUNT, "epsilon": 1},  # which groups there are is private
        {"query": COUNT, "epsilon": 1, "delta": "1e-6"},  # limits.delta is 0
        {"query": COUNT, "keys": PAGES},
        {"query": COUNT, "keys": PAGES, "epsilon": -1},
        {"query": COUNT, "keys": PAGES, "epsilon": "nan"},
        {"query": COUNT, "keys": PAGES, "epsilon": 1e400},
        {"query": COUNT, "keys": [["a", "b"]], "epsilon": 1},
        {"query": "SELECT * FROM views", "epsilon": 1},
        {"query": "SELECT COUNT(*) FROM hidden", "epsilon": 1},
        {"query": "SELECT COUNT(*) FROM read_csv('views.csv')", "epsilon": 1},
        {"query": "DROP TABLE views", "epsilon": 1},
        {"query": "SELECT COUNT(*) FROM views WHERE " + "(" * 3_000 + "1=1" + ")" * 3_000, "epsilon": 1},
        {"query": "SELECT COUNT(*) FROM views WHERE " + "NOT " * 2_000 + "1=1", "epsilon": 1},
        {"query": "", "epsilon": 1},
        {"query": COUNT, "keys": PAGES, "epsilon": 1, "dry": "no"},
        {"query": COUNT, "keys": PAGES, "epsilon": 1, "python": "lambda: 1"},
    ],
)
def test_what_cannot_be_asked_is_refused_and_not_charged(site, body):
    token, before = site.token("wrong", 1), spent(site)
    found = site.ask(token, "POST", "/api/sql", {"dry": False, **body})
    assert found.status == 422 and len(found.raw) < 5_000 and spent(site) == before


def test_a_price_says_which_groups_are_left_out_and_history_says_what_was_asked(tmp_path):
    with serving(written(tmp_path, CONFIG + '\n[limits]\ndelta = "1e-4"\n')) as site:
        boss, token = site.token("boss", curator=True), site.token()
        capped = {"data": "views", "analyst": "ann", "cap": 100, "delta": "2e-4"}
        assert site.ask(boss, "PUT", "/api/caps", capped).status == 200
        query = "SELECT page, COUNT(*) AS c FROM views GROUP BY page"
        asked = {"query": query, "epsilon": "0.5", "delta": "1e-4"}
        price = site.ask(token, "POST", "/api/sql", asked).body["price"]
        answer = site.ask(token, "POST", "/api/sql", {**asked, "dry": False}).body
        assert price["threshold"] == answer["about"]["threshold"] > 0
        here = wpinq.connect(site.url, token).quote_sql(query, "0.5", delta="1e-4")
        assert f"below {price['threshold']:,.6g} are left out" in repr(here)
        named = site.ask(token, "POST", "/api/sql", {"query": query, "epsilon": "0.5", "keys": ["p1"]}).body["price"]
        assert named["threshold"] is None
        assert {row["name"] for row in site.ask(token, "GET", "/api/history").body["asked"]} == {query}


GAUSSIAN = {"epsilon": "0.5", "delta": "1e-6", "mechanism": "gaussian"}


def test_a_price_tells_the_delta_of_gaussian_noise_and_limits_hold_it_for_plans_too(tmp_path):
    with serving(written(tmp_path, CONFIG + '\n[limits]\ndelta = "1e-5"\n')) as site:
        token, ledger = site.token("gauss", 10), Ledger.existing(tmp_path / "ledger")
        ledger.cap("gauss", 10, "1e-4")
        for path, asked in (
            ("sql", {"query": COUNT, "keys": ["p1"], **GAUSSIAN}),
            ("measure", {"plan": [{"do": "table", "name": "views"}], **GAUSSIAN}),
        ):
            before = ledger.spent()
            cost = site.ask(token, "POST", f"/api/{path}", {**asked, "dry": True}).body["price"]["cost"]
            assert site.ask(token, "POST", f"/api/{path}", {**asked, "dry": False}).status == 200
            paid = [after - was for was, after in zip(before, ledger.spent(), strict=True)]
            assert [Fraction(cost["epsilon"]), Fraction(cost["delta"])] == paid == [Fraction(1, 2), Fraction(1, 10**6)]
            for dry in (True, False):
                refused = site.ask(token, "POST", f"/api/{path}", {**asked, "delta": "2e-5", "dry": dry})
                assert refused.status == 422 and "at most 1e-5 here" in refused.body["error"]["message"]


def test_a_price_tells_the_delta_that_all_tables_of_a_ledger_are_charged(tmp_path):
    words = {"delta": "0.1", "unit": wpinq.users("user", at_most=1), "ledger": tmp_path / "ledger"}
    one = wpinq.protect([("u", "a")], 10, columns={"user": str, "page": str}, name="one", **words)
    two = wpinq.protect([("u", "b")], 10, columns={"user": str, "town": str}, name="two", **words)
    query = "SELECT town, COUNT(*) AS n FROM one JOIN two ON one.user = two.user GROUP BY town"
    quote = quoted(query, {"one": one, "two": two}, epsilon=1, delta="1e-3")
    cost = priced_sql(quote, None).cost
    quote.charge()
    assert [Fraction(cost["epsilon"]), Fraction(cost["delta"])] == list(Ledger.existing(tmp_path / "ledger").spent())
