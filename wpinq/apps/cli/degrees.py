"""`wpinq degrees`: how often things are counted, measured and fitted by one command."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wpinq.apps.cli import arguments, options
from wpinq.apps.cli.inputs import Input
from wpinq.apps.cli.lines import say
from wpinq.apps.cli.outputs import check_fit, write_json
from wpinq.errors import ExactnessError, installed
from wpinq.exact import decimal, exact, positive

if TYPE_CHECKING:
    from wpinq import Quote
    from wpinq.collection import Collection
    from wpinq.core import DataSet, Node, Terms
    from wpinq.postprocess.degrees.fit import Fit


class MethodOption(StrEnum):
    """How the two curves are reconciled; see `wpinq.postprocess.degrees.reconcile`."""

    posterior = "posterior"
    path = "path"
    squares = "squares"


class PriorOption(StrEnum):
    """What the posterior of two curves assumes; see `wpinq.postprocess.degrees.reconcile`."""

    uniform = "uniform"
    smooth = "smooth"


SPLIT = Fraction(3, 4)
"""The default share of the CDF where two whole curves are measured; its bins are more informative."""


@dataclass(frozen=True)
class FittedRelease:
    """What was measured and fitted."""

    column: str
    data: DataSet
    paid: Terms
    fit: Fit
    node: Node


@arguments.over(arguments.protected)
def degrees(
    data: Input,
    *,
    of: Annotated[str, typer.Option(help="The column whose values are counted.", metavar="COLUMN", show_default=False)],
    epsilon: options.Epsilon = None,
    rho: Annotated[
        str | None,
        typer.Option(help="What it costs instead, with Gaussian noise.", metavar="RHO", show_default=False),
    ] = None,
    budget: options.BudgetOrAll = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="Measure the CDF and the frequency sequence, each as a whole, and give the CDF this share, such as "
            "0.75. By default one question tells both, with less error.",
            metavar="SHARE",
            show_default=False,
        ),
    ] = None,
    analyst: options.Analyst = None,
    explain: options.Explain = False,
    method: Annotated[
        MethodOption | None,
        typer.Option(help="How to fit; path and squares need two curves, and imply --split 0.75.", show_default=False),
    ] = None,
    prior: Annotated[
        PriorOption | None,
        typer.Option(
            help="What the posterior of two curves assumes; implies --split 0.75. smooth: neighbouring counts are about"
            " equally frequent, which is wrong, and told by nothing, where they are not.",
            show_default=False,
        ),
    ] = None,
    json: options.JsonPath = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the fit here: .png, .svg or .pdf.", metavar="OUT", show_default=False)
    ] = None,
    synthesize: Annotated[
        Path | None,
        typer.Option(
            help="Write synthetic data with the fitted degrees here: .parquet, .arrow, .csv, .tsv or .txt.",
            metavar="OUT",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Measure how often the values of a column occur, and fit a degree distribution.

    What is measured: how many values occur at least k times, and how often the r-th most frequent value occurs, each
    where it is more accurate. Nothing else leaves the data, and everything that is written follows from it.

    What is protected is one record, or with --unit one person: then the degrees are those of the records that are kept.
    """
    from wpinq.apps.cli.show import explained, prices

    terms, allowed = terms_of(epsilon, rho, budget)
    share = share_of(split, method, prior)
    written = check_fit(json, plot, synthesize, data.files())
    empty = data.limitless()
    schema = empty._node.schema
    pair = (next((name for name in schema.names if name != of), "user"), schema[of].name)

    how = {"split": share, "method": method and method.value, "prior": prior and prior.value, "analyst": analyst}
    quotes = quoted(empty, of, terms, how)
    if explain:
        typer.echo(explained([prices("degrees", quotes)], data, empty, allowed, **_price(terms)))
        return
    release = measured(data, of, terms, how, budget=allowed)
    if json is not None:
        write_json(
            json, {"wpinq": installed(), "of": release.column, "mechanism": terms.mechanism, **release.fit.content()}
        )
    if plot is not None:
        release.fit.plot(plot)
    if synthesize is not None:
        _synthesize(release.fit, synthesize, pair)
    _show(release, written)


def terms_of(epsilon: str | None, rho: str | None, budget: str | None) -> tuple[Terms, Fraction | None]:
    """What a run spends, epsilon or rho, and what a new ledger allows where that is more.

    Raises:
        ExactnessError: Both are given, or nothing is.
    """
    from wpinq.core import GAUSSIAN, Terms

    allowed = options.amount(budget, "--budget")
    if rho is None:
        cost, rest = options.cost_or_all("degrees", epsilon, allowed)
        return Terms(cost, call="degrees"), rest
    if epsilon is not None:
        raise ExactnessError("degrees: give --epsilon, what it costs, or --rho, with Gaussian noise; not both.")
    return Terms(mechanism=GAUSSIAN, rho=positive(rho, "--rho"), call="degrees"), allowed


def share_of(split: str | None, method: MethodOption | None, prior: PriorOption | None = None) -> Fraction | None:
    """The share of the CDF, where two whole curves are asked for, by a split or by what only they have.

    Raises:
        ExactnessError: It is not between 0 and 1.

    >>> share_of("0.5", None), share_of(None, MethodOption.path), share_of(None, None)
    (Fraction(1, 2), Fraction(3, 4), None)
    """
    if split is None:
        return None if method in (None, MethodOption.posterior) and prior is None else SPLIT
    share = positive(split, "--split")
    if share >= 1:
        raise ExactnessError(f"--split: {split} is not between 0 and 1; the CDF and the sequence both need a share.")
    return share


def quoted(empty: Collection, of: str, terms: Terms, how: dict[str, Any]) -> list[Quote[Any]]:
    """What a release would measure: what is refused is refused here, without records, before a ledger is made."""
    import polars as pl

    from wpinq.degrees.release import quoted

    how = how | {"method": how["method"] or "posterior"}
    return quoted(empty.map(pl.col(of)), terms, name=f"degrees of {of}", **how)


def measured(data: Input, of: str, terms: Terms, how: dict[str, Any], *, budget: Fraction | None) -> FittedRelease:
    """Charge, read the input, and fit."""
    import polars as pl

    import wpinq
    from wpinq.core import sources

    price = _price(terms)
    counted = replace(data, rho=None).protect_to_spend(**price, budget=budget).map(pl.col(of))
    words: dict[str, Any] = {"name": f"degrees of {of}", **how, **price}
    fit = wpinq.degrees.release(counted, mechanism=terms.mechanism, **words)
    return FittedRelease(of, sources(counted._node)[0], terms, fit, counted._node)


def _price(terms: Terms) -> dict[str, Fraction | None]:
    """What is spent, of epsilon or of rho."""
    amounts = {"epsilon": terms.epsilon, "rho": terms.rho}
    return {word: None if amount is None else exact(amount, "degrees") for word, amount in amounts.items()}


def _synthesize(fit: Fit, path: Path, columns: tuple[str, str]) -> None:
    """Write synthetic data, the same for the same fit; warnings become notes."""
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", UserWarning)
        fit.synthesize(path, columns=columns, seed=0)
    for note in notes:
        say(str(note.message))


def _between(interval: tuple[int, int]) -> str:
    return f"{interval[0]:,} to {interval[1]:,}"


def _show(release: FittedRelease, written: list[Path]) -> None:
    from wpinq.apps.cli.show import aligned, budget_line, protects_line
    from wpinq.core import biases
    from wpinq.html.numbers import beside_noise, nearly
    from wpinq.postprocess.degrees.fit import LEVEL, NUMBERS

    fit, paid = release.fit, release.paid
    low, high = fit.band()
    table = [("k", "noisy", "fit", f"{LEVEL:.0%} band")]
    for k in sorted({*range(1, 6), *(10**power for power in range(1, 8))}):
        if k <= min(len(fit.cdf), len(low)):
            band = f"{low[k - 1]:,} to {high[k - 1]:,}"
            noisy = f"{fit.noisy_cdf[k - 1]:,}" if k <= len(fit.noisy_cdf) else ""
            table.append((f"{k:,}", noisy, f"{fit.cdf[k - 1]:,}", band))
    typer.echo(f"values that occur at least k times\n\n{aligned(table, right=True)}\n")
    for line in (
        f"{fit.distinct:,} distinct values, {fit.records:,} records, the most frequent {fit.largest:,} times;"
        f" half occur at most {fit.quantile(0.5):,} times.",
        f"Noise alone leaves, with probability {LEVEL} each: "
        + "; ".join(f"{name} {_between(fit.interval(name))}" for name in NUMBERS)
        + ".",
        *([beside_noise(bias)] if (bias := biases(release.node)) else []),
        f"{'Gaussian noise of standard deviation' if paid.rho else 'Noise scale'} "
        f"{' and '.join(nearly(scale) for scale in dict.fromkeys(fit.scales))},"
        f" for {'rho' if paid.rho else 'epsilon'} {decimal(exact(paid.rho or paid.epsilon, 'degrees'))} in all.",
        protects_line(release.node),
        budget_line(release.data.ledger),
        *(f"Written: {path}" for path in written),
    ):
        typer.echo(line)
