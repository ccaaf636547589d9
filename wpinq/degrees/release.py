"""Release a degree distribution: choose the question, split epsilon, measure, fit.

By default the question is the corner (see `durfee`), which needs no split and had the least error on every real data
set that it was tried on. With `split` it is two whole curves, as in *Things that count*, with that share for the CDF.
Where epsilon is 1 or more a split near 1/2 costs twice the error of one near 1 (see `reconcile`): prefer none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from wpinq.arguments import COLLECTION, NAME, NAMES, NOTHING, takes
from wpinq.core.operators.resolution import fit_noise
from wpinq.core.plan.stability import Survey
from wpinq.core.pricing.privacy_cost import BEST, GAUSSIAN, LAPLACE, Terms
from wpinq.degrees.observed import WIDEST, at_once, observe_corner
from wpinq.degrees.pipelines import cdf, corner, sequence
from wpinq.errors import ExactnessError, PlanError
from wpinq.exact import Amount, positive
from wpinq.postprocess.degrees.fit import Fit
from wpinq.postprocess.degrees.posterior.evidence import Cornered
from wpinq.postprocess.degrees.reconcile import LARGEST_SCALE, Method, Prior, check_method, check_prior, reconcile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wpinq.collection import Collection
    from wpinq.core.measurements.measurement import Measurement
    from wpinq.core.pricing.quote import Quote
    from wpinq.degrees.hierarchy import Hierarchy

WIDEST_OF_TWO = {"uniform": 500, "smooth": 25}
"""The same of two curves."""


@overload
def release(
    collection: Collection, epsilon: Amount | None = None, *, within: Amount | None = None,
    mechanism: str = LAPLACE, rho: Amount | None = None, delta: Amount | None = None, split: Amount | None = None,
    method: Method | None = None, prior: Prior | None = None, name: str | None = None, analyst: str | None = None,
) -> Fit: ...  # fmt: skip


@overload
def release(
    collection: Collection, epsilon: Amount | None = None, *, mechanism: str = LAPLACE, rho: Amount | None = None,
    delta: Amount | None = None, by: Sequence[str] | str, nodes: Any, name: str | None = None,
    analyst: str | None = None,
) -> Hierarchy: ...  # fmt: skip


@takes(
    "degrees.release",
    collection=COLLECTION,
    mechanism=NAME,
    method=NAME | NOTHING,
    prior=NAME | NOTHING,
    by=NAMES | NOTHING,
)
def release(
    collection: Collection,
    epsilon: Amount | None = None,
    *,
    within: Amount | None = None,
    mechanism: str = LAPLACE,
    rho: Amount | None = None,
    delta: Amount | None = None,
    split: Amount | None = None,
    method: Method | None = None,
    prior: Prior | None = None,
    by: Sequence[str] | str | None = None,
    nodes: Any = None,
    name: str | None = None,
    analyst: str | None = None,
) -> Fit | Hierarchy:
    """Measure how often each record of a collection is counted, and fit a degree distribution.

    Without `split` it is one measurement at the full epsilon: each record is counted by column or by row, whichever
    tells it better, so nothing depends on a choice that the data would have to make. Asked again with the same
    arguments it costs nothing and answers the same.

    With `by` it gives one for each node of a public hierarchy, such that the items of all children are those of their
    parent. A record lies in one node of each level, so epsilon is divided among the levels, the root's included, and
    not among nodes.

    Args:
        collection: The items, such as `views.map(lambda user, page: page)`.
        epsilon: What it costs the privacy unit in all, exact.
        within: Instead of it, by how much noise may move the number of items, with probability 0.95, and the largest
            multiplicity as well: the least epsilon that does it is charged. Not with `split` or `by`.
        mechanism: "geometric", "laplace", "gaussian" or "best"; see `measure`. The posterior is of the noise's
            law. Two curves, of a `split`, are fitted under Laplace noise alone.
        rho: Instead of epsilon, what Gaussian noise costs in all.
        delta: With epsilon, of Gaussian noise.
        split: Measure two whole curves instead, and give this share of epsilon, between 0 and 1, to the CDF.
        method: How two curves are reconciled, `"posterior"` by default; a corner has no other method.
        prior: What the posterior of two curves assumes, `"uniform"` by default; see `reconcile` for what `"smooth"`
            gains and risks. A corner finds its prior itself (see `durfee`). Where the smooth one turns
            out to be too much work, asking again without it costs nothing more.
        by: The columns of a hierarchy, the highest level first, such as `("country", "region")`; the other columns name
            the items. One item in two regions counts as two.
        nodes: Its lowest nodes, as tuples of these columns' values or a frame: they are public, and what lies elsewhere
            is not counted.
        name: Name of the release in the ledger, which also makes an independent repetition.
        analyst: Who is charged, where the curator keeps caps for each analyst.

    Raises:
        PlanError: The method or the prior is unknown, or is given without a split where only two curves have it, or the
            noise is too wide for a posterior in memory (scale 1,000, of two curves 500, smooth 25) or next to none
            (scale 10**-9); nothing was charged. Or the data turn out too large beside wide noise, after the charge.
        ExactnessError: `epsilon` or `split` is not an exact number in its range; nothing was charged.
        BudgetError: It costs more than is left; nothing was charged.
        BinError: A node is none of these columns' values; nothing was charged.
    """
    terms = Terms(epsilon, mechanism, rho, delta, within, call="release")
    if within is not None and (split is not None or by is not None):
        raise PlanError("release(within=...): takes the place of epsilon=; and of split= and by=, which divide it.")
    if by is not None:
        if split is not None or method is not None or prior is not None:
            raise PlanError("release(by=...): each node is one corner; leave out split=, method= and prior=.")
        from wpinq.degrees.hierarchy import release_by

        return release_by(collection, terms, by, nodes, name=name, analyst=analyst)
    method = check_method(method or "posterior", "release")
    quotes = quoted(collection, terms, split=split, method=method, prior=prior, name=name, analyst=analyst)
    made = collection._commit(quotes)
    if split is None:
        evidence = Cornered(observe_corner(made[0]), made[0].scale, made[0].gaussian)
        return Fit(*evidence.staircases((0.5,))[0], evidence, method, made[0].about)
    return reconcile(made[0], made[1], method=method, prior=prior or "uniform")


def quoted(
    collection: Collection,
    terms: Terms,
    *,
    split: Amount | None = None,
    method: Method = "posterior",
    prior: Prior | None = None,
    name: str | None = None,
    analyst: str | None = None,
) -> list[Quote[Measurement]]:
    """Check the arguments of `release` and quote its measurements: the diagonal split, or the two curves of a split."""
    check_prior(prior or "uniform", method, "release")
    if split is None:
        if method != "posterior" or prior is not None:
            option = f"prior={prior!r}" if method == "posterior" else f"method={method!r}"
            raise PlanError(f"release({option}): only two curves have it; add split=, such as split=0.75.")
        return at_once([(corner(collection), terms, name)], WIDEST, analyst)
    share = positive(split, "release(split=...)")
    if share >= 1:
        raise ExactnessError(f"release(split={split}): the share of the CDF is between 0 and 1; both curves need some.")
    if terms.mechanism in (GAUSSIAN, BEST):
        raise PlanError(
            f"release(split=..., mechanism={terms.mechanism!r}): two curves are fitted under Laplace noise; leave "
            "split= out, which errs less anyhow. Nothing was charged."
        )
    curves = cdf(collection), sequence(collection)
    paid = terms.agreed(Survey.of(fit_noise(curves[0]._node)))
    names = (name and f"{name}: cdf", name and f"{name}: sequence")
    questions = [(curve, paid.part(part, terms.call), named)
             for curve, part, named in zip(curves, (share, 1 - share), names, strict=True)]  # fmt: skip
    widest = WIDEST_OF_TWO[prior or "uniform"] if method == "posterior" else LARGEST_SCALE
    return at_once(questions, widest, analyst)
