"""`wpinq.connect`: what is asked through a server is the very question of Python, with its answers and its price."""

import datetime as dt
import socket
import ssl
import threading
import urllib.request

import polars as pl
import pytest
from depth import thin
from serving import CONFIG, serving, written

import wpinq
from wpinq.core.ledger import Ledger
from wpinq.errors import BudgetError, PlanError, SourceError

PLANS = {
    "map": lambda v: v.map(lambda page: page),
    "two columns": lambda v: v.map(lambda page, user: (user.upper(), page)),
    "computed": lambda v: v.map(lambda size, page: (page, size // 10 + 1)),
    "sql": lambda v: v.map("upper(page) AS p"),
    "column": lambda v: v.map("page"),
    "polars": lambda v: v.map(pl.col("page")),
    "named": lambda v: v.map(lambda page: page[1:], columns=["digit"]),
    "filter": lambda v: v.filter(lambda page, size: (page != "p1") & (size > 3)).map("page"),
    "filter sql": lambda v: v.filter("page <> 'p1' AND size > 3").map("page"),
    "cdf": lambda v: wpinq.degrees.cdf(v.map("page")),
    "sequence": lambda v: wpinq.degrees.sequence(v.map("page")),
    "shave": lambda v: v.map("page").shave([2, 1], "part"),
    "distinct": lambda v: v.map(lambda user, page: (user, page)).distinct().map("page"),
    "group_by": lambda v: v.group_by("page", len),
    "group_by key": lambda v: v.group_by(lambda page: page[0], len, columns=["views"]),
    "limit": lambda v: v.limit("page", 3).map("page"),
    "part": lambda v: v.partition("page", ["p1", "p2"])["p2"].map("user"),
    "concat": lambda v: v.concat(v).map("page"),
    "subtract": lambda v: v.map("page").subtract(v.filter("size > 3").map("page")),
    "union": lambda v: v.map("page").union(v.filter("size > 3").map("page")),
    "intersect": lambda v: v.map("page").intersect(v.filter("size > 3").map("page")),
    "join": lambda v: v.map("user, page").join(v.map("user, size"), on="user", at_most=30).map("page"),
    "join_rows": lambda v: v.map("user, page").join_rows(v.map("user, size"), on="user").map("page"),
    "semijoin": lambda v: v.semijoin(v.filter("size > 30"), on="page").map("page"),
    "antijoin": lambda v: v.antijoin(v.filter("size > 48"), left="page", right=lambda page: page).map("page"),
}


@pytest.fixture(scope="module")
def here(site):
    return wpinq.connect(site.url, site.token("connected", 200))


@thin(4)
@pytest.mark.parametrize("name", PLANS)
def test_a_plan_is_the_same_question_there_and_here(site, here, name):
    plan, views = PLANS[name], site.catalogue.data["views"].views
    remote = plan(here.data["views"])
    quote, local = remote.quote("1/2", f"p {name}"), plan(views).quote("1/2", f"p {name}")
    assert quote.price.cost == {"epsilon": "0.5", "delta": "0"} and not quote.price.free
    assert quote.price.expected[0].scale == pytest.approx(float(local.scale))
    made = remote.measure("1/2", f"p {name}")
    before = Ledger.existing(site.place / "ledger").spent()
    same = plan(views).measure("1/2", f"p {name}")
    assert Ledger.existing(site.place / "ledger").spent() == before  # so it was charged there, as this very question
    bins = {1: ["p1", "p2", "nope"], 2: [("p1", 1), ("p3", 2), ("U1", "p1")]}[len(same.node.schema)]
    if [column.kind.value for column in same.node.schema][-1] == "integer":
        bins = [1, 2, 500] if len(same.node.schema) == 1 else bins[:2]
    elif len(same.node.schema) == 2:
        bins = bins[2:]
    assert made.observe_many(bins).tolist() == same.observe_many(bins).tolist()
    assert made.interval(0.9) == same.interval(0.9) and made.scale == same.scale
    assert remote.quote("1/2", f"p {name}").price.free


def test_what_the_curator_serves_is_observed_and_fitted(site, here):
    pages = here.measurements["views.pages"]
    own = site.catalogue.measured["views.pages"].measurement
    assert pages.observe("p1") == own.observe("p1") and "views.pages" in repr(here)
    fit = here.fit("degrees")
    curves = [site.catalogue.measured[f"views.{one}"].measurement for one in ("cdf", "sequence")]
    assert fit.cdf.tolist() == wpinq.degrees.reconcile(*curves).cdf.tolist()
    found = site.ask(site.token(), "GET", "/api/fits/degrees").body
    assert found["cdf"] == fit.cdf.tolist() and len(found["low"]) == len(found["high"])
    assert site.ask(site.token(), "GET", "/api/fits/none").status == 403


def test_sql_and_budget_have_the_faces_of_python(site, here):
    query = "SELECT page, COUNT(*) AS c FROM views GROUP BY page ORDER BY c DESC"
    price = here.quote_sql(query, 1, keys=["p1", "p2"], name="remote")
    assert "costs epsilon 1" in repr(price)
    answer = here.sql(query, 1, keys=["p1", "p2"], name="remote")
    views = site.catalogue.data["views"].views
    assert answer.rows == wpinq.sql(query, {"views": views}, epsilon=1, keys=["p1", "p2"], name="remote").rows
    assert answer.frame.columns == ["page", "c", "low", "high"] and here.budget[0].cap == "200"
    total = here.sql("SELECT SUM(size) AS s FROM views", 1, name="total")
    assert total.value == pytest.approx(9_800, abs=5_000)
    with pytest.raises(BudgetError, match="cap"):
        here.sql("SELECT COUNT(*) FROM views", 500)


def test_what_is_not_there_is_refused_with_what_is(here):
    """A KeyError named what was asked for alone, and `dry` was said to be impossible."""
    names = ", ".join(here.measurements)
    for held, there in ((here.data, "views"), (here.measurements, names), (here.releases, "none")):
        with pytest.raises(PlanError, match=rf"\['nope'\]: there are .*{there}"):
            held["nope"]
        assert "nope" not in held and held.get("nope") is None
    with pytest.raises(PlanError, match=r"dry=...\): cannot be sent to a server; quote_sql\(...\) tells the price"):
        here.sql("SELECT COUNT(*) FROM views", 1, dry=True)
    with pytest.raises(PlanError, match="cannot be sent to a server; there are at_most, bounds"):
        here.sql("SELECT COUNT(*) FROM views", 1, loss=1)
    with pytest.raises(PlanError, match=r"^sql\(keys=...\): int does not fit"):
        here.sql("SELECT page, COUNT(*) FROM views GROUP BY page", 1, keys=[1])


@pytest.mark.parametrize(
    ("plan", "match"),
    [
        (lambda v: v.map(lambda page: page or None), "cannot be sent"),
        (lambda v: v.map(lambda page: hash(page) + 1), "cannot be sent"),
        (lambda v: v.filter(lambda page: page in {"a", "b"}), "cannot be sent"),
        (lambda v: v.flat_map(lambda page: [page]).measure(1), "cannot be sent"),
        (lambda v: v.group_by("page", lambda group: group[0]), "only len"),
        (lambda v: v.shave(lambda page: 1), "cannot be sent"),
        (lambda v: v.count(1), "SQL"),
        (lambda v: v.join(v, on="page"), "at_most"),
        (lambda v: v.map("page").concat(wpinq.protect([("a",)], 1, columns=["page"])), "connection|differ|columns"),
        (lambda v: v.map(lambda nope: nope), "columns"),
        (lambda v: v.measure(1, continual=True), "live|continual"),
    ],
)
def test_what_cannot_be_sent_is_refused_here_with_the_reason(here, plan, match):
    with pytest.raises(PlanError, match=match):
        plan(here.data["views"])


def test_a_token_goes_over_tls_or_to_this_machine_and_is_never_redirected(site, here):
    token = site.token()
    for url in ("http://example.org", "ftp://127.0.0.1", "https://ann@example.org", "https://example.org/?a=b", "x"):
        with pytest.raises(PlanError, match="connect"):
            wpinq.connect(url, token)
    with pytest.raises(PlanError, match="token"):
        wpinq.connect(site.url, "secret")
    with pytest.raises(SourceError, match="no valid token"):
        wpinq.connect(site.url, token[:-2] + "00")
    assert token not in repr(here) + repr(wpinq.connect(site.url, token))


def certified(place):
    """A certificate that no client trusts, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), dt.datetime.now(dt.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    made = x509.CertificateBuilder(name, name, key.public_key(), 7, now, now + dt.timedelta(1)).sign(
        key, hashes.SHA256()
    )
    plain = serialization.NoEncryption()
    (place / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (place / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    )


@pytest.mark.parametrize(
    "answer",
    [
        b"garbage\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}",
        b"HTTP/1.1 500 no\r\nContent-Length: 9\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
    ],
)
def test_an_answer_that_is_no_http_or_is_cut_off_is_one_line(answer):
    """It raised what Python's own library raises, and `wpinq mcp` asked for a report."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def reply():
            connection = listening.accept()[0]
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=reply)
        thread.start()
        with pytest.raises(SourceError, match="cannot be reached, or is no wpinq server"):
            wpinq.connect(f"http://127.0.0.1:{listening.getsockname()[1]}", f"wpinq_{0:016}_{'a' * 43}")
        thread.join()


@pytest.mark.parametrize("url", ["https://a b", "https://a.example/\r\nX: y", "http://127.0.0.1:1/a b"])
def test_an_address_with_a_space_or_a_line_break_is_none(url):
    with pytest.raises(PlanError, match="no address"):
        wpinq.connect(url, f"wpinq_{0:016}_{'a' * 43}")


def test_tokens_go_over_tls_to_a_server_that_can_be_trusted_only(tmp_path):
    certified(written(tmp_path, CONFIG.replace("port = 0", 'port = 0\ncertificate = "cert.pem"\nkey = "key.pem"')))
    with serving(tmp_path) as site:
        token, url = site.token(), site.url.replace("http://", "https://")
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        request = urllib.request.Request(f"{url}/api/measurements", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, context=context) as found:
            assert found.status == 200
        with pytest.raises(SourceError, match="cannot be reached"):  # nobody vouches for it
            wpinq.connect(url, token)


def test_an_answer_of_a_server_has_intervals_and_shows_them(here):
    total = here.sql("SELECT COUNT(*) AS c FROM views", 1, name="shown")
    low, high = total.interval()
    assert low < total.value < high and (low + high) / 2 == pytest.approx(total.value)
    rows = here.sql("SELECT page, COUNT(*) AS c FROM views GROUP BY page", 1, keys=["p1", "p2"], name="shown")
    assert repr(rows).count(" ± ") == 2 and "epsilon 1" in repr(rows) and "±" in rows._repr_html_()
    assert rows.frame["low"][0] < rows.frame["c"][0] < rows.frame["high"][0]
    with pytest.raises(PlanError, match="many values"):
        rows.interval()
