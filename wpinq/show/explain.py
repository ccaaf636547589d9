"""Explain: a plan as a tree, with the stability of each step, and the cost and expected error of a measurement.

It reads plans and quotes, and no data; of a ledger only what a quote says is left.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from wpinq.core.ledger.several import price_lines
from wpinq.core.ledger.versions import printable
from wpinq.core.operators.window import each_is_charged
from wpinq.core.plan.node import Node, Source, fingerprints, sources, steps
from wpinq.core.plan.phrase import biases
from wpinq.core.plan.stability import Survey, by_ledger
from wpinq.core.pricing.privacy_cost import GAUSSIAN, LAPLACE, Terms, costs_at_once, moved_squared, rho_by_weight
from wpinq.core.pricing.sensitivity import ledger_sensitivities, unit_sensitivities
from wpinq.core.pricing.threshold import delta_of, threshold_of
from wpinq.exact import decimal, four_digits, short
from wpinq.html.numbers import beside_noise, of_threshold

if TYPE_CHECKING:
    from wpinq.core.plan.dataset import DataSet
    from wpinq.core.pricing.quote import Quote


class Shown(str):
    """A text that was already printed; its `repr` is empty, so that Python's prompt does not print it again."""

    __slots__ = ()

    def __repr__(self) -> str:
        return ""


def show_measured(
    root: Node, epsilon: Fraction | None, mechanism: str = "geometric", noise: Sequence[str] = (), *,
    cost: Sequence[str] = (),
) -> str:  # fmt: skip
    """Print and return the tree of a plan and the cost of measuring it.

    Args:
        root: The plan.
        epsilon: What it costs the privacy unit.
        mechanism: The name of its noise.
        noise: Replaces the lines about one scale.
        cost: Replaces all about the cost.
    """
    text = "\n".join(explained(root, epsilon, mechanism, noise, cost))
    print(text)  # noqa: T201
    return Shown(text)


def explained(
    root: Node, epsilon: Fraction | None, mechanism: str = "", noise: Sequence[str] = (), cost: Sequence[str] = ()
) -> list[str]:
    """The lines of `show_measured`."""
    survey = Survey.of(root)
    if survey.unbounded is not None:
        return [survey.unbounded, *bias_lines(root), *tree(root)]
    cost = [*(cost or _cost(survey, epsilon, mechanism, noise)), *bias_lines(root)]
    return [*cost, *tree(root), "", *_uses(survey)]


def tree(root: Node) -> list[str]:
    """The plan from the measurement back to its sources, one step in each line; a shared step is shown once."""
    lines: list[str] = []
    digests = fingerprints(root)
    same = {node: digests[node] or node for node in steps(root)}
    readers = Counter(same[source_node] for node in {same[n]: n for n in same}.values() for source_node in node.inputs)
    numbers: dict[object, int] = {}

    def visit(node: Node, lead: str, branch: str) -> None:
        again = same[node] in numbers
        if node.inputs and readers[same[node]] > 1:
            numbers.setdefault(same[node], len(numbers) + 1)
        number = f" [{numbers[same[node]]}]" if same[node] in numbers else ""
        new = not again and digests[node] is None and all(digests[entry] is not None for entry in node.inputs)
        facts = _facts(node) + (", no fingerprint: a new question every time" if new else "")
        lines.append(printable(f"{lead}{branch}{node.title}{number}{', as above' if again else facts}"))
        deeper = lead + {"": "", "├─ ": "│  ", "└─ ": "   "}[branch]
        for count, source_node in enumerate(() if again else node.inputs, start=1):
            visit(source_node, deeper, "└─ " if count == len(node.inputs) else "├─ ")

    visit(root, "", "")
    return lines


def _facts(node: Node) -> str:
    if isinstance(node, Source):
        bound = node.data.unit.bound
        most = "no contribution bound" if bound is None else f"contribution bound {decimal(bound)}"
        return f"  {node.schema}  unit: {node.data.unit.text}; {most}"
    factors = sorted(set(node.stability), reverse=True)
    part = f", part {node.part[1]}" if node.part else ""
    rounding = f", {node.rounding}" if node.rounding else ""
    columns = "" if node.schema == node.inputs[0].schema else f"  {node.schema}"
    return f"{columns}  stability {' and '.join(short(factor) for factor in factors)}{part}{rounding}"


def cost_lines(
    epsilon: Fraction, scale: Fraction, resolution: int, sensitivities: Mapping[DataSet, Fraction], *, mechanism: str,
    noise: Sequence[str] = (), often: str = "",
) -> list[str]:  # fmt: skip
    """What a measurement costs each data set and is worth.

    Args:
        epsilon: What it costs the privacy unit.
        scale: Of its noise, in weight.
        resolution: Steps of a geometric noise in a weight of 1.
        sensitivities: For each data set how far one unit of it can move what is measured, in weight.
        mechanism: "geometric" or "laplace".
        noise: Replaces the lines about one scale.
        often: How often it is charged; see `how_often`.
    """
    mean, half = expected_error(scale, resolution, mechanism)
    lines = list(noise) or [
        f"measure(epsilon={decimal(epsilon)})  {mechanism} noise of scale {short(scale)}",
        _moved_by_noise(mean, half),
    ]
    lines += [
        f"  data set {data.name!r}: epsilon {decimal(move / scale)}{often}" for data, move in sensitivities.items()
    ]
    together = [sum(paid) for paid in by_ledger(sensitivities).values() if len(paid) > 1]
    return lines + [f"  one person in all of a ledger: epsilon {decimal(times * epsilon)}{often}" for times in together]


def gaussian_lines(
    survey: Survey, noise: Any, often: str, epsilon: Fraction, delta: Fraction, *,
    widths: Sequence[str] = (),
) -> list[str]:  # fmt: skip
    """What a measurement with Gaussian noise costs each data set and is worth, for `explain` and quotes.

    Args:
        widths: Replaces the lines about the noise of one answer.
    """
    resolution = survey.root.resolution
    if delta:
        terms = f"epsilon={short(epsilon)}, delta={decimal(delta)}"
        costs = {data: f"epsilon {short(cost.epsilon)}, delta {decimal(cost.delta)}"
                 for data, (cost,) in costs_at_once(survey, epsilon, delta).items()}  # fmt: skip
    else:
        terms, rates = f"rho={short(noise.rho(moved_squared(survey)))}", rho_by_weight(survey, noise.square)
        costs = {data: f"rho {short(move * rates[data])}" for data, move in survey.sensitivities.items()}
    moved = max(unit_sensitivities(survey), key=lambda unit: unit.l1 * unit.linf)
    whole, largest = Fraction(moved.l1, resolution), Fraction(moved.linf, resolution)
    spread = (
        f"and one bin by at most {short(largest)}" if largest < whole else "and nothing says that one bin moves by less"
    )
    half = noise.half_width(Fraction(95, 100)) / resolution
    wide = [
        f"measure({terms})  gaussian noise of standard deviation {four_digits(float(noise.scale) / resolution)}",
        _moved_by_noise(noise.mean() / resolution, half),
    ]
    return [
        *(widths or wide),
        f"  one unit moves all bins by at most {short(whole)} together, {spread}",
        *(f"  data set {data.name!r}: {cost}{often}" for data, cost in costs.items()),
    ]


def _moved_by_noise(mean: float, half: float) -> str:
    usual, most = four_digits(mean), four_digits(half)
    return f"  noise moves a bin by {usual} on average, and by at most {most} with probability 0.95"


def bias_lines(root: Node) -> list[str]:
    """What answers differ by that is no noise."""
    text = beside_noise(biases(root))
    return [f"  {text[0].lower()}{text[1:]}"] if text else []


def published_lines(node: Node, noise: Any) -> list[str]:
    """From which noisy weight on `release` publishes bins, at its delta, where the ledgers of a plan allow one."""
    sets = sources(node)
    if not all(data.ledger.promise.failing for data in sets) or fingerprints(node)[node] is None:
        return []
    delta = delta_of(None, sets, "release")
    least = of_threshold(threshold_of(node, noise, delta), "bins")
    return [f"  published by release(delta={decimal(delta)}): {least}"]


def how_often(survey: Survey) -> str:
    """How often a measurement is charged: once, of parts that add up, or of windows for all of them or for each."""
    if not any(node.many for node in survey.steps):
        times = max(map(survey.times, survey.sensitivities), default=Fraction(1))
        return f"; of the parts of the group {short(times)} are charged, the costliest" if times > 1 else ""
    return ", for each window that is asked for" if each_is_charged(survey) else ", for all windows"


def _cost(survey: Survey, epsilon: Fraction | None, mechanism: str, noise: Sequence[str]) -> list[str]:
    if epsilon is None:
        return [f"measure(epsilon)  noise of scale {short(survey.scale(Fraction(1)))} / epsilon"]
    resolution, sensitivities = survey.root.resolution, survey.sensitivities
    return cost_lines(
        epsilon,
        survey.scale(epsilon),
        resolution,
        sensitivities,
        mechanism=mechanism,
        noise=noise,
        often=how_often(survey),
    )


def _uses(survey: Survey) -> list[str]:
    """For each data set the stability of the whole plan, the sum over all paths, and what one unit moves."""
    total: dict[DataSet, Fraction] = defaultdict(Fraction)
    for (data, _), stability in survey.paths.items():
        total[data] += stability
    units, fine = ledger_sensitivities(survey), survey.root.resolution
    return [
        f"data set {data.name!r}: stability {short(count)} in all; one unit moves {short(survey.sensitivities[data])},"
        f" and {short(Fraction(units[data.ledger.identity].linf, fine))} in one bin at the most"
        for data, count in total.items()
    ]


def expected_error(scale: Fraction, resolution: int, mechanism: str = "geometric") -> tuple[float, float]:
    """The error that noise of a scale makes in a bin: its mean absolute value, and what 95% of bins keep within.

    With s the scale in units of 1/resolution and r = exp(-1/s), geometric noise N has the mean absolute value 2r / (1 -
    r^2), and the least t with P(|N| <= t) = 1 - 2 r^(t+1) / (1 + r) >= 0.95. Laplace noise has s, and s ln 20.

    Args:
        scale: In weight.
        resolution: Steps of a geometric noise in a weight of 1.
        mechanism: "geometric" or "laplace".

    Returns:
        Both in weight.

    >>> mean, half = expected_error(Fraction(10), 1)
    >>> round(mean, 3), half
    (9.983, 30.0)
    """
    if mechanism != "geometric":
        return float(scale), float(scale) * math.log(20)
    s = float(scale * resolution)
    r = math.exp(-1 / s)
    half = max(0, math.ceil(s * math.log(40 / (1 + r))) - 1)
    return 2 * r / -math.expm1(-2 / s) / resolution, half / resolution


def explain_plan(node: Node, terms: Terms) -> str:
    """See `explain`: the plan, and with an amount what a measurement on these terms would cost."""
    survey = Survey.of(node)
    # what was given may be any object, so it is not compared
    free = terms.epsilon is None and terms.rho is None and terms.delta is None
    if survey.unbounded or (free and terms.mechanism == LAPLACE):
        return show_measured(survey.root, None)
    paid = terms.agreed(survey)
    noise = paid.buys(survey)
    if paid.noise != GAUSSIAN:
        return show_measured(survey.root, paid.epsilon, paid.noise)
    cost = gaussian_lines(survey, noise, how_often(survey), paid.epsilon, paid.delta)
    return show_measured(survey.root, None, cost=cost)


def explain_measurement(quote: Quote[Any], lines: Sequence[str]) -> str:
    """See `Measurement.explain`.

    Args:
        quote: That of the measurement.
        lines: About its noise, where that differs from answer to answer.
    """
    cost: list[str] = []
    if quote.gaussian and not lines:
        survey = Survey.of(quote.node)
        cost = gaussian_lines(survey, quote.mechanism, how_often(survey), quote.epsilon, quote.payment.delta)
    return show_measured(quote.node, quote.epsilon, getattr(quote.mechanism, "name", ""), lines, cost=cost)


def quote_text(quote: Quote[Any], widths: Sequence[str]) -> str:
    """A quote: what it costs and is worth, and what would be left.

    Args:
        quote: The quote.
        widths: The lines about noise of every epoch.
    """
    survey = Survey.of(quote.node)
    often = how_often(survey)
    if quote.gaussian:
        lines = gaussian_lines(survey, quote.mechanism, often, quote.epsilon, quote.payment.delta, widths=widths)
    else:
        lines = cost_lines(
            quote.epsilon, quote.scale, quote.node.resolution, quote.sensitivities,
            mechanism=getattr(quote.mechanism, "name", ""), noise=widths, often=often,
        )  # fmt: skip
    lines += [*bias_lines(quote.node), *(published_lines(quote.node, quote.mechanism) if quote.releases else ())]
    return "\n".join([*lines, *price_lines(lambda: quote.prices)])
