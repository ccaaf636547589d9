"""What `explain` says of error, uses and rounding, against the mechanisms and the kernels that it speaks of."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from strategies import evaluate, protected

import wpinq
from wpinq import graphs as graph
from wpinq.core.measurements.measure import explain
from wpinq.core.noise import mechanism
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.plan.stability import Survey
from wpinq.show.explain import expected_error

LEVEL = Fraction(95, 100)


def edges():
    return graph.simple(protected(src="integer", dst="integer"))


@pytest.mark.parametrize("scale", ["1/1000", "1/10", "1/2", 1, "7/3", 10, 30, 1234, 10**5])
@pytest.mark.parametrize("resolution", [1, 2, 720_720, 2**40])
def test_half_width_is_that_of_the_mechanism(scale, resolution):
    scale = Fraction(scale)
    _, half = expected_error(scale, resolution)
    exact = mechanism("geometric", scale * resolution).half_width(LEVEL)
    assert abs(half * resolution - exact) <= 1e-12 * exact
    grid = mechanism("laplace", scale * resolution)
    _, half = expected_error(scale, resolution, "laplace")
    assert abs(half * resolution * grid.grid - grid.half_width(LEVEL)) <= 1 + 1e-12 * grid.half_width(LEVEL)


@pytest.mark.parametrize("scale", [0.3, 1.0, 10.0])
def test_mean_error_is_the_sum_over_the_distribution(scale):
    """Against the definition, E|N| = sum of |k| (1 - r) / (1 + r) r^|k|, up to 200 scales."""
    r, k = np.exp(-1 / scale), np.arange(1, int(200 * scale) + 1)
    wanted = 2 * (k * (1 - r) / (1 + r) * r**k).sum()
    mean, _ = expected_error(Fraction(str(scale)), 1)
    assert mean == pytest.approx(wanted, rel=1e-9)
    finer, _ = expected_error(Fraction(str(scale)) / 2, 2)
    assert finer == pytest.approx(wanted / 2, rel=1e-9)


@pytest.mark.parametrize(("query", "uses"), [("triangles_by_intersect", 3), ("joint_degrees", 4)])
def test_what_is_shown_is_what_a_measurement_gets(query, uses, capsys):
    """The dither at the measurement is in the tree and in the scale, as it will be when it is measured."""
    asked = getattr(graph, query)(edges())
    text = explain(asked, "0.1")
    assert capsys.readouterr().out == text + "\n"
    scale = float(Survey.of(fit_noise(asked._node)).scale(Fraction(1, 10)))
    assert f"noise of scale {scale:.6g}\n" in text
    assert f"stability {scale / 10:.6g} in all" in text
    assert uses < scale / 10 < uses + 0.001
    assert "right on average" in text
    assert f"scale {scale / 10:.6g} / epsilon" in explain(asked)
    assert asked.measure("0.1").explain() == text


def test_a_literal_is_shown_as_it_was_written():
    """Charges of a count in SQL stood in the ledger as `map(polars: dyn int: 0.alias("all"))`."""
    assert 'map(polars: 0.alias("all"))' in explain(protected(page="text").map(pl.lit(0).alias("all")))


def test_a_shared_step_is_shown_once():
    """Three uses of the edges: one subtree, and two references to it."""
    text = explain(graph.triangles_by_intersect(edges()))
    assert text.count("protect(records)") == 1
    assert text.count("distinct [1], as above") == 2
    data = protected(a="integer")
    twice = data.filter(lambda a: a > 0).concat(data.filter(lambda a: a > 0))
    other = data.filter(lambda a: a > 0).concat(data.filter(lambda a: a > 1))
    assert explain(twice).count("as above") == 1
    assert explain(other).count("as above") == 0
    assert explain(other).count("protect(records)") == 2


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_the_factor_of_a_join_is_as_shown(parts):
    """A key of weight D keeps 1 - D/2^b of the ideal weight, up to the floor, with b as it is shown."""
    left, right = (protected(name=name, a="integer", b="integer") for name in "lr")
    if parts > 1:
        left = left.flat_map(lambda a, b: [(a, b)], columns={"a": int, "b": int}, at_most=parts)
    joined = left.join(right, on="a", result=lambda a: a)
    text = explain(joined)
    count = 1000
    (weight,) = evaluate(joined, [(1, b) for b in range(count)], [(1, b) for b in range(count)]).values()
    shown = [b for b in range(30, 50) if f"keep 1 - D/2^{b} of their weight" in text]
    assert len(shown) == 1
    ideal = Fraction(count * count, 2 * count)
    lost = 1 - weight / ideal
    assert abs(lost - Fraction(2 * count, 2 ** shown[0])) < Fraction(2 * count, 2 ** (2 * shown[0] - 2))


def test_columns_are_shown_where_they_change_and_zones_as_they_were_given():
    """Every line of a web log's plan had eleven columns, and a time zone was left out."""
    data = protected(page="text", time="instant").filter("page <> ''").filter("page <> 'x'")
    hours = explain(data.map(pl.col("time").dt.convert_time_zone("Europe/Berlin").dt.hour()))
    assert hours.count("page: text") == 1
    assert 'convert_time_zone("Europe/Berlin").dt.hour()' in hours
    assert "scale 16.8577\n" in explain(data, epsilon="0.05932")


def test_gaussian_noise_is_explained_as_it_is_quoted(capsys):
    pages = wpinq.protect([("a",)], budget=1, delta="1e-6", accounting="renyi", columns={"page": str})
    for asked in ({"rho": "0.01"}, {"epsilon": "0.5", "delta": "1e-7"}):
        text = pages.explain(**asked, mechanism="gaussian")
        assert capsys.readouterr().out == text + "\n"
        quoted = str(pages.quote(**asked, mechanism="gaussian"))
        assert text.splitlines()[:4] == quoted.splitlines()[:4]
        assert "protect(records)" in text
    assert "laplace noise" in pages.explain("0.5", mechanism="laplace")
    with pytest.raises(wpinq.PlanError, match=r"explain\(rho=...\): is of Gaussian noise"):
        pages.explain(rho=1)
