"""Pictures of fits: valid files of every kind and shape, nothing half-written, nothing shown that is not there."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
from depth import deep, thin
from matplotlib.image import imread

from wpinq.errors import SourceError
from wpinq.postprocess import plot
from wpinq.postprocess.plot import plot_fit


def conjugate(curve):
    steps = np.arange(1, int(max(curve, default=0)) + 1)
    return len(curve) - np.searchsorted(np.sort(curve), steps)


def bands(low, high):
    ranks = np.arange(int(max(high, default=0)))
    swapped = tuple(len(one) - np.searchsorted(one[::-1], ranks, side="right") for one in (low, high))
    return lambda level, of="cdf": (low, high) if of == "cdf" else swapped


def make(cdf, noise=3.0, extra=5, seed=1, noisy=None):
    """A fit as `reconcile` gives it, with simulated noise and a band of plus or minus four."""
    cdf = np.asarray(cdf, dtype=np.int64)
    rng = np.random.default_rng(seed)
    sequence = conjugate(cdf)
    longer = [np.pad(one, (0, extra)).astype(float) for one in (cdf, sequence)]
    one, other = (curve + rng.laplace(0, noise, len(curve)).round() for curve in longer) if noisy is None else noisy
    low, high = np.maximum(longer[0] - 4, 0).astype(np.int64), (longer[0] + 4).astype(np.int64)
    return SimpleNamespace(cdf=cdf, sequence=sequence, noisy_cdf=one, noisy_sequence=other, band=bands(low, high))


def heavy(items=3000):
    degrees = np.minimum(np.random.default_rng(2).zipf(1.7, items), 800)
    return conjugate(degrees)


none = np.array([])
SHAPES = {
    "heavy": make(heavy()),
    "one": make([1]),
    "one long": make([1] * 300),
    "one wide": make([500]),
    "flat": make([40] * 40),
    "no noise": make([5, 3, 1], noise=1e-9),
    "empty": make([], extra=0),
    "only noise": make([], extra=40),
    "all below zero": make([3, 1], noisy=(np.full(5, -7.0), np.full(9, -1.0))),
    "without sequence": make([3, 1], noisy=(np.array([4, 2, -1.0]), none)),
    "without cdf": make([3, 1], noisy=(none, np.array([2, 2, 0, -1.0]))),
    "enormous": make([10**6, 10], noisy=(np.array([1e6, 1, 0.2]), none)),
}


@thin(3)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_a_picture(tmp_path, shape):
    path = tmp_path / "fit.png"
    plot_fit(SHAPES[shape], path, truth=[4, 2, 1, 0, 0])
    pixels = imread(path)
    assert pixels.shape == (780, 1650, 4)
    assert pixels[..., :3].std() > 0.01
    assert [one.name for one in tmp_path.iterdir()] == ["fit.png"]


@thin(2)
@pytest.mark.parametrize("suffix", ["png", "svg", "pdf", "PNG"])
def test_the_suffix_is_the_format(tmp_path, suffix):
    path = tmp_path / f"fit.{suffix}"
    plot_fit(SHAPES["heavy"], str(path), title="Cost: $5 & <10>_{x")
    begin = path.read_bytes()[:5]
    assert begin == {"png": b"\x89PNG\r", "svg": b"<?xml", "pdf": b"%PDF-"}[suffix.lower()]
    if suffix == "svg":
        assert ET.fromstring(path.read_text()).tag.endswith("svg")
    assert path.stat().st_size < 600_000


def parts(figure):
    """What one panel shows, by the legend's names."""
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        yield dict(zip(labels, handles, strict=True))


def test_what_is_drawn_are_the_numbers():
    fit = make(heavy())
    left, right = parts(plot.draw(fit, np.asarray(fit.cdf)))
    assert set(left) == {"noisy CDF", "fit", "truth", "90% band"}
    assert set(right) == {"noisy sequence", "fit", "truth", "90% band"}
    for panel, name, noisy, fitted in (
        (left, "noisy CDF", fit.noisy_cdf, fit.cdf),
        (right, "noisy sequence", fit.noisy_sequence, fit.sequence),
    ):
        x, y = panel[name].get_offsets().T
        assert np.array_equal(noisy[x.astype(int) - 1], y)
        assert (y > 0).all()
        for line in ("fit", "truth"):
            assert np.array_equal(staircase(panel[line], len(fitted)), fitted)


def staircase(line, size):
    """Read the value over each whole k back from a line's corners."""
    x, y = line.get_data()
    return y[np.searchsorted(x, np.arange(1, size + 1))]


def test_each_panel_shows_its_own_band():
    fit = make([30, 20, 10, 10, 6])
    panels = list(parts(plot.draw(fit)))
    low, high = fit.band(0.9)
    (left,), (right,) = (panel["90% band"].get_paths() for panel in panels)
    for k in range(1, len(low) + 1):
        for count, inside in (
            (high[k - 1] - 0.1, True),
            (high[k - 1] + 0.1, False),
            (low[k - 1] - 0.1, low[k - 1] == 0),
        ):
            assert left.contains_point((k, max(count, plot.BOTTOM))) == inside
    for rank in range(1, int(high[0]) + 1):
        top = (high >= rank).sum()
        assert right.contains_point((rank, top - 0.1)) == ((low >= rank).sum() < top)
        assert not right.contains_point((rank, top + 0.1))


def test_the_caption_counts_what_is_left_out():
    fit = make([3, 1], noisy=(np.array([3.0, 0, -2]), np.array([2.0, 1, 1, 1])))
    caption = plot.draw(fit)._supxlabel.get_text()
    assert caption.splitlines() == [
        "Noisy CDF: 3 values, 2 of them zero or less, which has no place on a log axis.",
        "Noisy sequence: 4 values.",
    ]


def test_the_caption_says_where_noisy_values_end():
    fit = make([3, 1], noisy=(np.array([3.0]), np.array([2.0, 1, 1])))
    first, second = plot.draw(fit)._supxlabel.get_text().splitlines()
    assert first == "Noisy CDF: 1 values; the fit beyond them follows from the other panel."
    assert second == "Noisy sequence: 3 values."


@deep
def test_millions_of_points_are_thinned(tmp_path):
    sequence = np.sort(np.random.default_rng(3).zipf(1.8, 2_000_000).clip(max=10**5))[::-1].astype(np.int64)
    cdf = np.cumsum(np.bincount(sequence)[:0:-1])[::-1]
    noise = np.random.default_rng(4).laplace(0, 10, len(sequence))
    fit = SimpleNamespace(
        cdf=cdf,
        sequence=sequence,
        noisy_cdf=cdf + noise[: len(cdf)],
        noisy_sequence=sequence + noise,
        band=bands(np.maximum(cdf - 20, 0), cdf + 20),
    )
    for panel in parts(plot.draw(fit)):
        for artist in panel.values():
            size = len(artist.get_offsets()) if hasattr(artist, "get_offsets") else 0
            size = max(size, len(artist.get_xdata()) if hasattr(artist, "get_xdata") else 0)
            assert size <= 8 * plot.POINTS + 4
    plot_fit(fit, tmp_path / "big.svg")
    assert (tmp_path / "big.svg").stat().st_size < 3_000_000


def test_no_global_state_is_touched(tmp_path):
    def settings():
        return {key: matplotlib.rcParams[key] for key in matplotlib.rcParams if key != "backend"}  # asking it sets it

    before, loaded = settings(), "matplotlib.pyplot" in sys.modules
    plot_fit(SHAPES["one"], tmp_path / "fit.png")
    assert settings() == before
    assert ("matplotlib.pyplot" in sys.modules) == loaded


@pytest.mark.parametrize("name", ["a.gif", "a", "a.png.txt"])
def test_an_unknown_suffix_is_refused(tmp_path, name):
    with pytest.raises(SourceError, match=r"must end in one of \.png, \.svg, \.pdf"):
        plot_fit(SHAPES["one"], tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_nothing_half_written(tmp_path, monkeypatch):
    path = tmp_path / "a.png"
    path.write_bytes(b"old")

    def fail(self, file, **_):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", fail)
    with pytest.raises(SourceError, match="No space left on device"):
        plot_fit(SHAPES["one"], path)
    with pytest.raises(SourceError, match="cannot be written"):
        plot_fit(SHAPES["one"], tmp_path / "no" / "a.png")
    assert path.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["a.png"]


@pytest.mark.parametrize("truth", [[1, 2], [-1], [1.5], ["a"], [[2, 1]], [float("nan")], 3])
def test_a_truth_that_is_no_curve_is_refused(tmp_path, truth):
    with pytest.raises(SourceError, match="truth"):
        plot_fit(SHAPES["one"], tmp_path / "a.png", truth)
    assert list(tmp_path.iterdir()) == []
