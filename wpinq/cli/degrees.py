"""`wpinq degrees`: how often things are counted, fitted to two measurements, from one command."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wpinq.cli import options
from wpinq.cli.errors import say
from wpinq.cli.inputs import Input, version_of
from wpinq.cli.outputs import check_outputs, write_json
from wpinq.errors import ExactnessError
from wpinq.exact import decimal, positive

if TYPE_CHECKING:
    from wpinq.degrees.fit import Fit
    from wpinq.measurement import Measurement


class Method(StrEnum):
    """How the two curves are reconciled; see `wpinq.degrees.reconcile`."""

    posterior = "posterior"
    path = "path"
    squares = "squares"


@dataclass(frozen=True)
class Release:
    """What was measured and fitted."""

    column: str
    cdf: Measurement
    sequence: Measurement
    fit: Fit


def degrees(
    source: options.InputPath,
    *,
    of: Annotated[str, typer.Option(help="The column whose values are counted.", metavar="COLUMN", show_default=False)],
    budget: Annotated[
        str,
        typer.Option(
            help="Epsilon that this costs in all, exactly: 0.2 or 1/5. Where there is no ledger yet, one is made with "
            "this budget.",
            metavar="EPSILON",
            show_default=False,
        ),
    ],
    split: Annotated[str, typer.Option(help="The share of it that the CDF gets, between 0 and 1.")] = "0.75",
    columns: options.ColumnNames = None,
    header: options.Header = True,
    ledger: options.LedgerPath = None,
    name: options.Name = None,
    data_version: options.DataVersion = None,
    method: Annotated[Method | None, typer.Option(help="How to fit; posterior by default.", show_default=False)] = None,
    json: options.JsonPath = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw the fit here: .png, .svg or .pdf.", metavar="OUT", show_default=False),
    ] = None,
    synthesize: Annotated[
        Path | None,
        typer.Option(
            help="Write synthetic data with the fitted degrees here: .parquet, .csv, .tsv or .txt.",
            metavar="OUT",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Measure how often the values of a column occur, and fit a degree distribution.

    Two measurements are paid from the budget: how many values occur at least k times, and how often the r-th most
    frequent value occurs. Nothing else leaves the data, and everything that is written follows from them.
    """
    from wpinq.degrees.plot import SUFFIXES
    from wpinq.degrees.writers import WRITERS

    place = Input(source, columns, header, ledger, name, data_version)
    shares = shares_of(budget, split)
    outputs = {"--json": (json, ()), "--plot": (plot, SUFFIXES), "--synthesize": (synthesize, tuple(WRITERS))}
    check_outputs(outputs, place.places())
    schema = place.schema()
    pair = (next((one for one in schema.names if one != of), "user"), schema[of].name)

    release = measured(place, of, shares, method)
    if json is not None:
        write_json(json, content(release))
    if plot is not None:
        release.fit.plot(plot)
    if synthesize is not None:
        _synthesize(release.fit, synthesize, pair)
    _show(release, [path for path, _ in outputs.values() if path is not None])


def shares_of(budget: str, split: str) -> tuple[Fraction, Fraction]:
    """Epsilon of the CDF and of the sequence.

    Raises:
        ExactnessError: One of them would not be above zero.

    >>> shares_of("0.2", "0.75")
    (Fraction(3, 20), Fraction(1, 20))
    """
    epsilon, share = positive(budget, "--budget"), positive(split, "--split")
    if share >= 1:
        raise ExactnessError(f"--split: {split} is not between 0 and 1; the CDF and the sequence both need a share.")
    return share * epsilon, (1 - share) * epsilon


def measured(place: Input, of: str, shares: tuple[Fraction, Fraction], method: Method | None) -> Release:
    """Charge both measurements, read the input, and fit."""
    import polars as pl

    import wpinq

    counted = place.protect_to_spend(sum(shares, Fraction(0))).map(pl.col(of))
    cdf = wpinq.degrees.cdf(counted).measure(epsilon=shares[0], name=f"degrees of {of}: cdf")
    sequence = wpinq.degrees.sequence(counted).measure(epsilon=shares[1], name=f"degrees of {of}: sequence")
    how: dict[str, Any] = {} if method is None else {"method": method.value}
    return Release(of, cdf, sequence, wpinq.degrees.reconcile(cdf, sequence, **how))


def content(release: Release) -> dict[str, Any]:
    """What the JSON file holds. All of it follows from released numbers; `band` holds for each k alone."""
    from wpinq.cli.show import installed

    fit, both = release.fit, {"cdf": release.cdf, "sequence": release.sequence}
    low, high = fit.band(0.9)
    return {
        "epsilon": float(release.cdf.epsilon + release.sequence.epsilon),
        "epsilons": {name: float(one.epsilon) for name, one in both.items()},
        "scale": {name: float(one.scale) for name, one in both.items()},
        "of": release.column,
        "unit": release.cdf.home.unit.text,
        "version": version_of(release.cdf.home),
        "wpinq": installed(),
        "method": fit.method,
        "distinct": fit.distinct,
        "records": fit.records,
        "largest": fit.largest,
        "fit": {"cdf": fit.cdf.tolist(), "sequence": fit.sequence.tolist()},
        "band": {"level": 0.9, "low": low.tolist(), "high": high.tolist()},
        "noisy": {"cdf": fit.noisy_cdf.tolist(), "sequence": fit.noisy_sequence.tolist()},
    }


def _synthesize(fit: Fit, path: Path, columns: tuple[str, str]) -> None:
    """Write synthetic data, the same for the same fit; warnings become notes."""
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", UserWarning)
        fit.synthesize(path, columns=columns, seed=0)
    for note in notes:
        say(str(note.message))


def _show(release: Release, written: list[Path]) -> None:
    from rich.console import Console
    from rich.table import Table

    from wpinq.cli.show import budget_line

    fit = release.fit
    low, high = fit.band(0.9)
    table = Table("k", "noisy", "fit", "90% band", title="values that occur at least k times", title_justify="left")
    for column in table.columns:
        column.justify = "right"
    for k in sorted({*range(1, 6), *(10**power for power in range(1, 8))}):
        if k <= min(len(fit.cdf), len(low)):
            band = f"{low[k - 1]:,} to {high[k - 1]:,}"
            table.add_row(f"{k:,}", f"{fit.noisy_cdf[k - 1]:,}", f"{fit.cdf[k - 1]:,}", band)
    console = Console(highlight=False, markup=False)
    console.print(table)
    for line in (
        f"{fit.distinct:,} distinct values, {fit.records:,} records, the most frequent {fit.largest:,} times;"
        f" half occur at most {fit.quantile(0.5):,} times.",
        f"Noise scale {decimal(release.cdf.scale)} (cdf) and {decimal(release.sequence.scale)} (sequence),"
        f" for epsilon {decimal(release.cdf.epsilon)} and {decimal(release.sequence.epsilon)}.",
        budget_line(release.cdf),
        *(f"Written: {path}" for path in written),
    ):
        console.print(line, soft_wrap=True)
