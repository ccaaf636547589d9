"""The pages for browsers: what they show is what the API answers, and nobody else's page or name can do anything."""

import csv
import gzip
import html.parser
import io
import re
from fractions import Fraction
from urllib.parse import quote, urlencode

import polars as pl
import pytest
from browser import CHROMIUM, browser
from serving import CONFIG, Visitor, serving, written

from wpinq.apps.serve import sessions
from wpinq.apps.serve.page.routes import KINDS, content
from wpinq.core.ledger import Ledger

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&{{7*7}}"
PAGES = ["/", "/ask", "/budget", "/measurements/views.pages", "/fits/degrees"]
MOST = 60_000
"""Bytes of all that a browser loads, compressed."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A server whose every text is an attack; its file, its columns and what analysts type."""
    config = CONFIG.replace('"Views of each page"', f"'''{EVIL}'''").replace(
        'sequence = "sequence"', f"sequence = \"sequence\"\nmeaning = '''{EVIL}'''"
    )
    place = written(
        tmp_path_factory.mktemp("page"), config.replace('size = "int"', '\'<b onclick=x>\' = "int", size = "int"')
    )
    text = (place / "views.csv").read_text().replace("user,page,size", "user,page,size,<b onclick=x>")
    (place / "views.csv").write_text(text.replace("\n", ",1\n").replace("x>,1", "x>"))
    with serving(place) as asker:
        yield asker


class Reader(html.parser.HTMLParser):
    """The elements of a page."""

    def __init__(self, text):
        super().__init__()
        self.found, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)


def spent(site):
    return Ledger.existing(site.place / "ledger").spent()[0]


def test_all_that_a_browser_loads_is_small(site):
    visitor = Visitor(site, site.token())
    files = [visitor.ask("GET", f"/static/{name}", **{"Accept-Encoding": "gzip"}) for name in KINDS]
    assert all(one.headers["content-encoding"] == "gzip" for one in files)
    assert [gzip.decompress(one.raw) for one in files] == [content(name) for name in KINDS]
    pages = [visitor.get(path).raw for path in [*PAGES, "/sign-in"]]
    assert sum(len(one.raw) for one in files) + sum(len(gzip.compress(one)) for one in pages) <= MOST
    assert visitor.get("/static/uPlot.LICENSE.txt").status == 404
    assert all(word not in b"".join([*pages, *map(content, KINDS)]) for word in (b"http://127", b"cdn.", b"googleapis"))


def test_a_cookie_stands_for_a_token_and_opens_nothing_but_pages(site):
    token = site.token()
    visitor = Visitor(site, token)
    said = visitor.entered.headers["set-cookie"]
    assert visitor.entered.status == 303 and visitor.entered.headers["location"] == "/"
    assert "; HttpOnly" in said and "; SameSite=Strict" in said and "; Path=/" in said and "Domain" not in said
    assert visitor.get("/").status == 200 and token.split("_", 2)[2] not in said + visitor.get("/").text
    assert visitor.get("/api/measurements").status == 401
    assert site.ask(token, "GET", "/api/measurements").status == 200
    bare = Visitor(site)
    assert bare.ask("GET", "/", Authorization=f"Bearer {token}").headers["location"] == "/sign-in"
    for path in (*PAGES, "/releases/x", "/releases/x/y/z"):
        assert bare.get(path).status == 303 and bare.get(path).raw == b""
    assert bare.get("/sign-in").status == 200


def test_a_session_ends_with_its_token_by_signing_out_and_with_time(site, monkeypatch):
    token = site.token()
    one, two = Visitor(site, token), Visitor(site, token)
    assert one.cookie != two.cookie
    assert one.post("/sign-out", form=one.form()).status == 303
    assert one.get("/").status == 303 and two.get("/").status == 200
    site.tokens.revoke(token.split("_")[1])
    assert two.get("/").status == 303
    three, now = Visitor(site, site.token()), sessions.monotonic
    monkeypatch.setattr(sessions, "monotonic", lambda: now() + sessions.IDLE + 1)
    assert three.get("/").status == 303
    held = sessions.Sessions(secure=True)
    first = held.begin("t")
    for _ in range(sessions.MOST_OF_ONE):
        held.begin("t")
    name, value = held.cookie(first).split(";")[0].split("=")
    assert name == "__Host-wpinq" and "; Secure" in held.cookie(first)
    assert held.session_of([(b"cookie", f"{name}={value}".encode())]) is None


@pytest.mark.parametrize("token", ["", "x", "wpinq_" + "0" * 16 + "_" + "A" * 43])
def test_a_wrong_token_is_refused_and_told_nothing(site, token):
    visitor = Visitor(site, token)
    assert visitor.entered.status in (401, 429) and visitor.cookie == ""
    assert "www-authenticate" not in visitor.entered.headers


def test_a_form_of_another_page_does_nothing(site):
    visitor, other = Visitor(site, site.token("forged", 5)), Visitor(site, site.token("other", 5))
    before, asked = spent(site), {"query": "SELECT COUNT(*) AS c FROM views", "epsilon": "1", "do": "ask"}
    for form in ({}, {"form": ""}, {"form": "é"}, {"form": other.form()}):
        assert visitor.post("/ask", **asked, **form).status == 403
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "https://evil.example"},
                    {"Origin": "null"}):  # fmt: skip
        visitor.headers = headers
        assert visitor.post("/ask", **asked, form=other.form()).status == 403
        assert visitor.post("/ask", **asked, form=visitor.form()).status == 403
        assert visitor.post("/sign-out", form=visitor.form()).status == 403
        assert visitor.post("/sign-in", token=site.token()).status == 403
    visitor.headers = {}
    assert visitor.get("/ask", **asked).status == 200 and spent(site) == before
    visitor.headers = {"Origin": site.url}
    assert visitor.post("/ask", **asked, form=visitor.form()).status == 200 and spent(site) == before + 1


def test_no_text_becomes_anything_but_text(site):
    visitor = Visitor(site, site.token("xss", 5))
    typed = {"query": f'SELECT COUNT(*) AS "{EVIL.replace(chr(34), "")}" FROM views', "epsilon": "0.01", "name": EVIL}
    form = visitor.form()
    found = [visitor.get(path) for path in PAGES] + [
        visitor.get("/measurements/views.pages", bins=EVIL, level=EVIL),
        visitor.get("/measurements/views.pages", bins=EVIL),
        visitor.get("/measurements/views.cdf", first=EVIL, last="1"),
        visitor.get("/measurements/" + quote(EVIL.replace("/", ""), safe="")),
        visitor.get("/ask", build="1", data="views", what="sum", column="<b onclick=x>", where=EVIL),
        visitor.get("/ask", build="1", data=EVIL, what=EVIL),
        visitor.post("/ask", **{**typed, "query": EVIL, "keys": EVIL}, do="price", form=form),
        visitor.post("/ask", **typed, do="price", form=form),
        visitor.post("/ask", **typed, do="ask", form=form),
        visitor.post("/sign-in", token=EVIL),
    ]
    assert [one.status for one in found[-3:-1]] == [200, 200]
    for one in found:
        policy = one.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "script-src 'self'" in policy
        assert one.headers["cache-control"] == "no-store" and one.headers["x-content-type-options"] == "nosniff"
        read = Reader(one.text)
        assert all(attrs.get("src", "").startswith("/static/") for tag, attrs in read.found if tag == "script")
        assert not [attrs for _, attrs in read.found if any(name.startswith("on") or name == "style" for name in attrs)]
        assert not [tag for tag, _ in read.found if tag in ("img", "b", "iframe", "object", "style")]
        assert "alert(1)" not in "".join(re.findall(r"<script[^>]*>(.*?)</script>", one.text))
    assert EVIL in "".join(Reader(found[0].text).texts) and EVIL in "".join(Reader(found[6].text).texts)


def test_pages_show_what_the_api_answers(site):
    token = site.token("same", 5)
    visitor = Visitor(site, token)
    bins = {"bins": ["p1", "nope"], "level": "0.9"}
    told = site.ask(token, "POST", "/api/measurements/views.pages/observe", bins).body
    shown = visitor.get("/measurements/views.pages", bins="p1\r\nnope", level="0.9")
    assert re.findall(r'<td class="n">(-?[\d,]+) ± ([\d,]+)', shown.text) == [
        (f"{value:,}", f"{told['half_width']:g}") for value in told["values"]
    ]
    saved = visitor.get("/measurements/views.cdf", first="1", last="4", **{"as": "parquet"})
    ranged = site.ask(token, "POST", "/api/measurements/views.cdf/observe", {"range": {"first": 1, "last": 4}}).body
    frame = pl.read_parquet(io.BytesIO(saved.raw))
    assert frame["count"].to_list() == ranged["values"] and frame["index"].to_list() == [1, 2, 3, 4]
    assert (frame["count_high"] - frame["count"]).to_list() == [ranged["half_width"]] * 4
    fitted = site.ask(token, "GET", "/api/fits/degrees").body
    rows = list(csv.reader(io.StringIO(visitor.get("/fits/degrees", **{"as": "csv"}).text)))
    assert (
        rows[0] == ["k", "cdf", "cdf_low", "cdf_high"]
        and [int(row[1]) for row in rows[1:]][: len(fitted["cdf"])] == fitted["cdf"]
    )
    for path, given in (("/fits/degrees", {}), ("/measurements/views.pages", {"bins": EVIL})):
        picture = visitor.get(path, **given, **{"as": "png"})
        assert picture.raw.startswith(b"\x89PNG") and picture.headers["content-disposition"].startswith("attachment")


def test_a_question_is_priced_before_it_is_asked_and_charged_once(site):
    token, before = site.token("curious", 2), spent(site)
    visitor = Visitor(site, token)
    built = visitor.get("/ask", build="1", data="views", what="count", by="page", where="size > 3").text
    query = next(iter(re.findall(r"<textarea id=\"query\"[^>]*>\n(.*?)</textarea>", built, re.DOTALL)))
    query = query.replace("&#34;", '"').replace("&gt;", ">")
    assert query == 'SELECT "page", COUNT(*) AS answer\nFROM "views"\nWHERE size > 3\nGROUP BY "page"'
    asked = {"query": query, "keys": "p1\r\nnope", "epsilon": "1/4", "form": visitor.form()}
    price = visitor.post("/ask", **asked, do="price").text
    assert "It costs epsilon 0.25" in price and "± " in price
    assert (
        "<strong>1.75</strong> after this question" in price
        and "7 more of this kind" in price
        and spent(site) == before
    )
    first, again = (visitor.post("/ask", **asked, do="ask").text for _ in range(2))
    told = site.ask(token, "POST", "/api/sql", {"query": query, "keys": ["p1", "nope"], "epsilon": "1/4", "dry": False})
    assert spent(site) == before + Fraction(1, 4) and first == again
    assert all(f"{row[1]:,} ± " in first for row in told.body["rows"])
    over = visitor.post("/ask", **{**asked, "epsilon": "1.9"}, do="ask")
    assert over.status == 409 and spent(site) == before + Fraction(1, 4) and 'role="alert"' in over.text
    assert "0.25" in visitor.get("/budget").text
    saved = visitor.post("/ask", **asked, do="ask", **{"as": "csv"})
    assert saved.text.splitlines()[0] == "page,answer,answer_low,answer_high" and len(saved.text.splitlines()) == 3


def test_present_and_absent_bins_have_pages_of_one_form(site):
    visitor = Visitor(site, site.token())

    def form(bins):
        found = visitor.get("/measurements/views.pages", bins=bins)
        text = re.sub(r"(?s)^.*<main|</main>.*$", "", found.text)  # around it is the session's own form
        return found.status, re.sub(r"-?\d[\d.,]*", "0", text.replace(bins, "BIN")).splitlines()

    assert form("p1") == form("zz")
    assert form("p2") == form("qz")


def test_what_is_hidden_is_refused_like_what_is_not_there(site):
    visitor = Visitor(site, site.token())
    for path in ("/measurements/{}.pages", "/fits/{}", "/releases/{}", "/releases/{}/a/b"):
        one, two = (visitor.get(path.format(name)) for name in ("hidden", "nothing"))
        assert (one.status, one.raw) == (two.status, two.raw) == (403, one.raw)


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
def test_in_chromium(site, tmp_path):
    """Sign in, zoom by keys, ask, and be attacked; nothing is logged, on a phone nothing is wider than it."""
    token, before = site.token("real", 2), spent(site)
    with browser(tmp_path) as tab:
        tab.look(width=390, height=800, phone=True, dark=True)
        tab.go(site.url + "/")
        tab.write("#token", token)
        tab.press("main button")
        assert tab.value("document.cookie") == "" and tab.value("location.pathname") == "/"
        tab.go(f"{site.url}/measurements/views.pages?{urlencode({'bins': EVIL})}")
        assert EVIL in tab.value("document.querySelector('tbody').innerText")
        assert tab.value("document.documentElement.scrollWidth") <= 390
        tab.go(site.url + "/fits/degrees")
        tab.until("document.querySelector('figure .uplot canvas') && !document.querySelector('figure > svg')")
        tab.value("document.querySelector('figure').focus()")
        for key in ("+", "0"):
            tab.do("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
        assert tab.value("document.documentElement.scrollWidth") <= 390
        tab.go(site.url + "/ask")
        tab.write("#query", f"SELECT COUNT(*) AS answer FROM views WHERE page <> '{EVIL.replace(chr(39), '')}'")
        tab.write("#epsilon", "0.5")
        tab.press("button[value=price]")
        assert spent(site) == before
        tab.press(".pay")
        assert "±" in tab.value("document.querySelector('.answer').innerText")
        assert spent(site) == before + Fraction(1, 2)
        tab.do("Emulation.setScriptExecutionDisabled", value=True)
        tab.go(site.url + "/fits/degrees")
        assert tab.value("document.querySelectorAll('figure svg .dot').length") > 5
        said = [one for one in tab.errors if one.get("entry", {}).get("level") != "verbose"]
        assert said == []
