"""Every public call, with each argument replaced by what it does not take: refused in one line, nothing charged.

The odd values have `==`, `bool`, `hash` and `repr` that raise, are very long, or are of any type that another argument
takes. Whatever a call makes of them, it must be an answer or an error of wpinq's family, and an error charges nothing.
"""

import datetime as dt
import warnings
from decimal import Decimal
from fractions import Fraction

import algebra
import numpy as np
import polars as pl
import pytest
from aggregate_cases import CALLS as AGGREGATES
from depth import thin

import wpinq
from wpinq.apps import publish
from wpinq.apps.publish import Release
from wpinq.core.plan.node import sources
from wpinq.errors import WpinqError

NOW = dt.datetime(2026, 11, 22, 6, tzinfo=dt.UTC)
MARKER = "text-of-a-foreign-object"


class Raises:
    """An object that nothing can be done with."""

    __hash__ = None

    def __eq__(self, other):
        raise RuntimeError(MARKER)

    def __bool__(self):
        raise RuntimeError(MARKER)

    def __repr__(self):
        raise RuntimeError(MARKER)

    __str__ = __repr__


class RaisesHash(Raises):
    """The same in a set or a dictionary."""

    def __hash__(self):
        raise RuntimeError(MARKER)


ODD = {
    "None": None, "five": 5, "minus one": -1, "zero": 0, "huge": 10**400, "half": 0.5, "nan": float("nan"),
    "infinite": float("inf"), "tiny": 1e-320, "decimal nan": Decimal("NaN"), "fraction": Fraction(1, 3),
    "text": "nope", "empty": "", "long": "x" * 70_000, "surrogate": "\ud800", "nul": "a\0b", "star": "*",
    "pattern": "^a$", "bytes": b"x", "list": [1], "empty list": [], "dictionary": {"a": 1}, "set": {1},
    "tuple": ("a", 1), "object": object(), "raises": Raises(), "raises hash": RaisesHash(),
    "expression": pl.col("page"),
    "array": np.array([1.0, 2.0]), "frame": pl.DataFrame({"a": [1, 2]}), "lambda": lambda x: x, "class": int,
    "true": True, "date": dt.date(2026, 1, 1), "span": dt.timedelta(1), "generator": (one for one in [1]),
}  # fmt: skip

TYPED = {"user": str, "page": str, "x": float, "n": int, "at": dt.datetime}
ROWS = [("ann", "a", 1.5, 3, dt.datetime(2026, 1, 1, 5))] * 3 + [("bob", "b", 2.5, 4, dt.datetime(2026, 1, 2))] * 2


def calls(place):
    """Each public call with arguments that it takes."""
    (place / "v.csv").write_text("user,page\nann,a\n")
    views = wpinq.protect(ROWS, budget=10**9, delta="1/2", columns=TYPED)
    pages, measured = views.map("page"), views.map("page").measure(1)
    windowed = views.window(2, at="n").map("page").measure(1)
    links = views.map([pl.col("user"), pl.col("page")])
    live = wpinq.live({"page": str}, budget=10**9)
    continual, keys = live.measure(1, continual=True), live.select(1, continual=True)
    live.send([("a",)])
    live.advance()
    fit = wpinq.degrees.release(pages, 1)
    people = wpinq.protect(ROWS, budget=10**9, columns=TYPED, unit=wpinq.users("user", at_most=2))
    release, parts, clock = published(place)
    curved = wpinq.protect(ROWS, rho=10**9, columns=TYPED)
    crossed = wpinq.table(people, "page", categories={"page": ["a", "b"]}, epsilon=1, name="crossed")
    plan = wpinq.plan_tables(people, ["page", "user"], categories={"page": ["a"], "user": ["ann"]}, epsilon=1)
    planned = plan.measure()
    gaussian, numbers = (
        {"mechanism": "gaussian", "epsilon": 1, "rho": None, "delta": 1e-6},
        {"column": "x", "bounds": (0, 5)},
    )
    return views, {
        "protect": (wpinq.protect, {"source": ROWS, "budget": 1, "delta": 0, "ledger": None, "unit": None,
                                    "columns": TYPED, "header": True, "weight": None, "max_weight": 1, "name": None,
                                    "version": None, "secret": None, "where": "page = 'a'", "derive": {"m": "n"}}),
        "protect derived": (wpinq.protect, {"source": ROWS, "budget": 1, "columns": TYPED, "derive": {"m": "n"}}),
        "protect file": (wpinq.protect, {"source": str(place / "v.csv"), "budget": 1, "ledger": str(place / "ledger"),
                                         "unit": wpinq.users("user", at_most=3), "name": "n", "version": "v",
                                         "index": True}),
        "budget": (wpinq.budget, {"of": views}),
        "users": (wpinq.users, {"column": "user", "at_most": 2, "per": ("page", 1), "shared": False, "period": "1d",
                                "at": "at", "zone": None}),
        "users auto": (wpinq.users, {"column": "user", "at_most": "auto", "epsilon": 1, "bins": 3, "asking": 1}),
        "Unit": (wpinq.Unit, {"column": "user", "at_most": 2, "per": ("page", 1)}),
        "live": (wpinq.live, {"columns": {"page": str}, "budget": 1, "ledger": None, "unit": None, "delta": 0,
                              "name": "live", "lateness": None, "keep": None, "recover": None, "secret": None,
                              "where": "page = 'a'", "derive": None}),
        "kafka": (wpinq.kafka, {"brokers": "a:9", "topic": "t", "form": "json", "arrived": None, "config": None}),
        "postgres": (wpinq.postgres, {"url": "postgresql://a@b/c", "table": "t", "query": None}),
        "sqlite": (wpinq.sqlite, {"path": str(place / "no.db"), "table": "t", "query": None}),
        "sql": (wpinq.sql, {"query": "SELECT page, SUM(x) FROM v GROUP BY page", "tables": {"v": views}, "epsilon": 1,
                            "delta": "1e-6", "keys": None, "bounds": {"x": (0, 1)}, "name": None, "analyst": None}),
        "table": (wpinq.table, {"records": people, "down": ["page"], "across": "user", "epsilon": 1, "at_most": 2,
                                "categories": {"page": ["a", "b"], "user": ["ann"]}, "other": "else", "total": "all",
                                "per": ("page", 1), "name": "n", "analyst": None}),
        "table numbers": (wpinq.table, {"records": people, "down": "page", "categories": {"page": ["a"]}, "epsilon": 1,
                                        "sum": "x", "mean": ["x"], "median": "n",
                                        "bounds": {"x": (0, 5), "n": (0, 9)}}),
        "table names": (wpinq.table, {"records": people, "down": "page", "epsilon": 1, "delta": "1e-6",
                                      "other": "else"}),
        "table hierarchy": (wpinq.table, {"records": people, "down": "page", "epsilon": 1, "other": None,
                                          "hierarchy": {"page": {"a": "top", "b": "top"}},
                                          "keep": [({"page": "top"}, 5)]}),
        "table html": (crossed.html, {"path": str(place / "t.html"), "title": "pages"}),
        "table save": (crossed.save, {"path": str(place / "t.csv")}),
        "plan_tables": (wpinq.plan_tables, {"records": people, "tables": ["page", ("page", "user")], "epsilon": 1,
                                            "categories": {"page": ["a", "b"], "user": ["ann"]}, "other": "else",
                                            "mechanism": "geometric", "at_most": 2, "per": ("page", 1),
                                            "aim": "tables"}),
        "plan measure": (plan.measure, {"name": "n", "analyst": None}),
        "planned table": (planned.table, {"columns": ["page"], "level": 0.9}),
        "planned cells": (planned.cells, {"columns": next(iter(plan.shares))}),
        "planned save": (planned.save, {"path": str(place / "planned.csv")}),
        "suggest_bounds": (wpinq.suggest_bounds, {"collection": views, "column": "x", "epsilon": 1, "name": None}),
        "versioned": (wpinq.versioned, {"function": len, "version": "1", "name": "length"}),
        "suggest_bound": (wpinq.suggest_bound, {"collection": views, "epsilon": 1, "share": 0.95, "grid": (1, 2)}),
        "loss": (wpinq.loss, {"collection": people, "epsilon": 1, "at_most": 3, "name": None, "analyst": None}),
        "sql loss": (wpinq.sql, {"query": "SELECT COUNT(*) FROM v", "tables": {"v": people}, "epsilon": 1, "loss": 1}),
        "at_most": (people.at_most, {"records": 2, "per": ("page", 1)}),
        "at_most auto": (people.at_most, {"records": "auto", "per": None}),
        "sql at_most": (wpinq.sql, {"query": "SELECT COUNT(*) FROM v", "tables": {"v": people}, "epsilon": 1,
                                    "at_most": 2, "per": ("page", 1)}),
        **{name: call(views) for name, call in (algebra.CALLS | AGGREGATES).items()},
        "explain": (pages.explain, {"epsilon": 1}),
        "measure": (pages.measure, {"epsilon": 1, "name": "n", "mechanism": "geometric", "analyst": None,
                                    "within": None, "confidence": 0.9, "continual": False, "horizon": None}),
        "quote": (pages.quote, {"epsilon": 1, "name": "n", "mechanism": "geometric", "analyst": None, "within": None,
                                "confidence": 0.9, "continual": False, "horizon": None}),
        "measure quote": (pages.measure, {"quote": pages.quote(1)}),
        "measure within": (pages.measure, {"within": 5, "confidence": 0.9}),
        "select": (pages.select, {"epsilon": 1, "delta": 1e-6, "name": "n", "analyst": None}),
        "continual select": (live.select, {"epsilon": 1, "delta": 1e-6, "continual": True, "at_least": 1}),
        "continual release": (keys.release, {"epoch": 1}),
        **{f"gaussian {name}": (getattr(curved, name), {**given, **gaussian}) for name, given in (
            ("count", {}), ("mean", numbers), ("variance", numbers), ("histogram", {"column": "x", "edges": [0, 2, 5]}),
        )},
        "gaussian sql": (wpinq.sql, {"query": "SELECT COUNT(*) FROM v", "tables": {"v": curved}, **gaussian}),
        "gaussian degrees": (wpinq.degrees.release, {"collection": curved.map("page"), **gaussian}),
        "observe": (measured.observe, {"bin": "a"}),
        "observe_many": (measured.observe_many, {"bins": ["a"]}),
        "interval": (measured.interval, {"level": 0.9, "bins": 3}),
        "release": (measured.release, {"delta": 1e-6, "threshold": None, "keys": None}),
        "answer interval": (views.count(epsilon=1).interval, {"level": 0.9}),
        "answer table": (views.count(epsilon=1).table, {"level": 0.9, "simultaneous": True}),
        "answer save": (views.count(epsilon=1).save, {"path": str(place / "a.csv")}),
        "answer plot": (views.count(epsilon=1).plot, {"path": str(place / "a.png"), "title": "t"}),
        "count within": (views.count, {"within": 5, "confidence": 0.9}),
        "windows observe": (windowed.observe, {"bin": "a", "window": 1}),
        "windows at": (windowed.at, {"time": 1}),
        "continual observe": (continual.observe, {"bin": "a", "epoch": 1}),
        "continual interval": (continual.interval, {"level": 0.9, "bins": 1, "epoch": 1}),
        "continual stddev": (continual.stddev, {"epoch": 1}),
        "send": (live.send, {"records": [("a",)]}),
        "advance": (live.advance, {"until": None}),
        "answers": (live.answers, {"measurements": {"all": continual}, "bins": ["a"], "to": f"json:{place / 'o'}"}),
        "follow": (live.follow, {"source": str(place / "no.csv")}),
        "Secret": (wpinq.Secret, {"key": bytes(32)}),
        "degrees.corner": (wpinq.degrees.corner, {"collection": pages}),
        **{f"graphs.{name}": (getattr(wpinq.graphs, name), {"edges": links}) for name in GRAPHS},
        "graphs.measure": (wpinq.graphs.measure, {"edges": links, "epsilon": 1, "shares": None, "mutual": False,
                                                  "name": None, "analyst": None}),
        "graphs.fit": (wpinq.graphs.fit, {"measurements": wpinq.graphs.measure(links, 1), "seed": 1, "steps": 10,
                                          "chains": 1}),
        **{f"graphs.{name}": (getattr(wpinq.graphs, name), {"pairs": links}) for name in PAIRS},
        "graphs.measure_pairs": (wpinq.graphs.measure_pairs, {"pairs": links, "epsilon": 1, "shares": None,
                                                              "name": None, "analyst": None}),
        "graphs.undirected": (wpinq.graphs.undirected, {"edges": links, "mutual": True}),
        **{f"degrees.{name}": (getattr(wpinq.degrees, name), {"a": [3.0, 1.0], "b": [2.0, 2.0]})
           for name in ("earth_movers", "kolmogorov_smirnov", "volume")},
        "degrees.to_networkx": (wpinq.degrees.to_networkx, {"table": fit.synthesize(seed=1)}),
        **{f"degrees.{name}": (getattr(wpinq.degrees, name), {"collection": pages}) for name in ("cdf", "sequence")},
        "degrees.release": (wpinq.degrees.release, {"collection": pages, "epsilon": 1, "name": None, "analyst": None}),
        "degrees.reconcile": (wpinq.degrees.reconcile, {"cdf": [3.0, 2.0, 1.0], "sequence": [3.0, 1.0],
                                                        "scales": (1, 1), "method": "posterior"}),
        "band": (fit.band, {"level": 0.9}),
        "fit interval": (fit.interval, {"of": "distinct", "level": 0.9}),
        "quantile of a fit": (fit.quantile, {"q": 0.5}),
        "plot": (fit.plot, {"path": str(place / "p.png")}),
        "fit save": (fit.save, {"path": str(place / "fit.json")}),
        "draw": (fit.draw, {"seed": 1}),
        "to_mbi": (fit.to_mbi, {"attribute": "pages"}),
        "plan_budget": (wpinq.plan_budget, {"questions": {"pages": pages}, "epsilon": 1, "wanted": None}),
        "degrees by": (wpinq.degrees.release, {"collection": views.map([pl.col("user"), pl.col("page")]), "epsilon": 1,
                                               "by": ["user"], "nodes": ["ann"]}),
        "connect": (wpinq.connect, {"url": "http://127.0.0.1:9", "timeout": 1,
                                    "token": f"wpinq_{'0' * 16}_{'a' * 43}"}),
        "Release": (Release, {"file": parts, "name": "site", "home": place, "clock": clock}),
        "Release.read": (Release.read, {"path": place / "site.toml", "clock": clock}),
        "Release.period": (release.period, {"text": "2026-11-21"}),
        "Release.plan": (release.plan, {"period": "2026-11-21"}),
        "Release.run": (release.run, {"period": "2026-11-21", "accept": False, "again": False, "check": False}),
        "Release.backfill": (release.backfill, {"periods": "2026-11-21..2026-11-21"}),
        "Release.verify": (release.verify, {"period": "2026-11-21"}),
        "Release.deliver": (release.deliver, {"period": "2026-11-21"}),
        "Release.follow": (release.follow, {"workers": None}),
        "synthesize": (fit.synthesize, {"path": str(place / "s.parquet"), "seed": 1}),
    }  # fmt: skip


def published(place):
    """A release of which a period was published, what its file says, and its clock."""
    parts = {
        "data": {"source": "{date}.csv", "ledger": "release"}, "budget": {"epsilon": 9},
        "question": [{"name": "views", "counts": ["page"], "keys": ["a"], "epsilon": 1, "plot": False}],
        "sink": [{"directory": "out/{date}"}],
    }  # fmt: skip
    (place / "2026-11-21.csv").write_text("user,page\nann,a\n")
    (place / "site.toml").write_text(
        '[data]\nsource="{date}.csv"\nledger="release"\n[budget]\nepsilon=9\n'
        '[[question]]\nname="views"\ncounts=["page"]\nkeys=["a"]\nepsilon=1\n[[sink]]\ndirectory="out/{date}"\n'
    )
    release = Release(parts, "site", place, clock=lambda: NOW)
    release.run()
    return release, parts, lambda: NOW


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    return calls(tmp_path_factory.mktemp("calls"))


GRAPHS = [
    "simple", "joint_degrees", "triangles_by_degree", "triangles_by_intersect", "joint_buckets", "triangle_buckets",
]  # fmt: skip
PAIRS = ["pairs", "pair_buckets", "butterfly_buckets"]
NAMES = [
    *algebra.CALLS, *AGGREGATES,
    "at_most", "at_most auto", "sql at_most", "budget", "loss", "sql loss",
    "protect", "protect derived", "protect file", "users", "Unit", "live",
    "kafka", "postgres", "sqlite",
    "sql", "suggest_bounds", "plan_tables", "plan measure", "planned table", "planned cells", "planned save",
    "suggest_bound", "versioned",
    "quote", "measure quote", "follow",
    "Secret", "degrees.corner", *(f"graphs.{name}" for name in GRAPHS), "graphs.undirected",
    "graphs.measure", "graphs.fit", *(f"graphs.{name}" for name in PAIRS), "graphs.measure_pairs",
    "degrees.earth_movers", "degrees.kolmogorov_smirnov", "degrees.volume", "degrees.to_networkx",
    "explain", "measure", "measure within", "select",
    "observe", "observe_many",
    "interval", "release",
    "answer interval", "answer table", "answer save",
    "answer plot", "count within", "windows observe", "windows at", "continual observe", "continual select",
    "continual release", "continual interval", "continual stddev", "send", "advance",
    "degrees.cdf", "degrees.sequence", "degrees.release", "degrees.reconcile", "band", "fit interval",
    "quantile of a fit", "fit save", "plot", "synthesize", "answers", "users auto", "draw", "to_mbi",
    "plan_budget", "table", "table numbers", "table names", "table hierarchy", "table html", "table save",
    "degrees by", "connect",
    "Release", *(
        f"Release.{name}" for name in ("read", "period", "plan", "run", "backfill", "verify", "deliver", "follow")),
    *(f"gaussian {name}" for name in ("count", "mean", "variance", "histogram", "sql", "degrees")),
]  # fmt: skip


UNTRIED = {
    "wpinq.Answer": "aggregates, release and sql make it", "Answer.at": "windows have tests of their own",
    "Answer.consistent": "takes no argument", "wpinq.consistent": "`tests/query/test_adding_up.py` tries it",
    "Answer.content": "takes no argument",
    "Answer.to_arrow": "takes no argument",
    "wpinq.Collection": "protect and live make it",
    "wpinq.processes": "`tests/distributed` tries it", "wpinq.spark": "needs PySpark; `tests/distributed` tries it",
    "wpinq.Live": "live makes it", "wpinq.limit_memory": "holds for the process, so `test_memory.py` tries it",
    "wpinq.Measurement": "measure makes it", "wpinq.Quote": "quote makes it",
    "Live.close": "takes no argument", "Live.resume": "takes no argument",
    "Measurement.explain": "takes no argument", "Measurement.answer_from": "the engine hands it a histogram",
    "Measurement.noise_lines": "takes no argument", "Measurement.pairs": "streams ask it",
    "Measurement.digest": "the engine asks it", "Measurement.seals": "the engine asks it",
    "wpinq.degrees.Fit": "reconcile and release make it", "Fit.frequencies": "takes no argument",
    "Fit.content": "takes no argument",
    "wpinq.degrees.Hierarchy": "release makes it",
    **{f"Release.{one}": "takes no argument" for one in ("status", "late", "funds", "alert", "budget_line")},
    **{f"wpinq.apps.publish.{one}": "a release makes it" for one in ("Outcome", "Plan", "Standing")},
    **{f"wpinq.graphs.{one}": "plain numbers, which measure and fit make"
       for one in ("Graph", "GraphFit", "Measurements", "Noisy", "NoisyByDegree", "Summary", "SyntheticGraph",
                   "PairGraph", "PairFit", "PairMeasurements", "PairSummary", "SyntheticPairs")},
}  # fmt: skip
"""Public calls without an argument that a caller could get wrong."""


def test_every_call_is_tried(known):
    unnamed = set(NAMES) ^ set(known[1])
    assert not unnamed, f"{sorted(unnamed)}: each call stands in `calls` and in NAMES"
    tried = [getattr(call, "__func__", call) for call, _ in known[1].values()]
    owners = {"wpinq": wpinq, "Collection": wpinq.Collection, "Measurement": wpinq.Measurement, "Live": wpinq.Live,
              "Answer": wpinq.Answer, "wpinq.apps.publish": publish, "Release": Release,
              "wpinq.degrees": wpinq.degrees, "wpinq.graphs": wpinq.graphs, "Fit": wpinq.degrees.Fit}  # fmt: skip
    missing = []
    for where, owner in owners.items():
        for name in getattr(owner, "__all__", [one for one in dir(owner) if not one.startswith("_")]):
            found = getattr(owner, name, None)  # a field without a default is no attribute of its class
            found = getattr(found, "__func__", found)
            error = isinstance(found, type) and issubclass(found, Exception)
            if callable(found) and not error and not any(found is one for one in tried):
                missing.append(f"{where}.{name}")
    inherited = {f"Live.{one}" for one in dir(wpinq.Collection)}
    new, old = {*missing} - inherited - set(UNTRIED), set(UNTRIED) - {*missing}
    assert not new, f"{sorted(new)}: try each in `calls` and name it in NAMES, or say in UNTRIED why not"
    assert not old, f"{sorted(old)}: UNTRIED names what is tried, or is not there"


@thin(4)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.timeout(60)
def test_an_odd_argument_is_refused_in_one_line_and_charges_nothing(name, known, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    views, every = known
    call, usual = every[name]
    ledger = sources(views._node)[0].ledger
    wrong = []
    for argument in usual:
        for label, odd in ODD.items():
            if (argument, label) == ("title", "long"):
                odd = odd[:1000]  # noqa: PLW2901 - each letter is drawn, which takes four seconds
            spent = ledger.spent()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    call(**{**usual, argument: odd})
            except WpinqError as error:
                text = str(error).partition(" Spent so far:")[0]
                if len(text) > 600 or "\n" in text or MARKER in text or ledger.spent() != spent:
                    wrong.append((argument, label, text[:100], "charged" if ledger.spent() != spent else "message"))
            except Exception as error:
                wrong.append((argument, label, f"{type(error).__name__}: {str(error)[:60]}"))
    assert not wrong, f"{len(wrong)} of {len(usual) * len(ODD)}: {wrong[:12]}"
