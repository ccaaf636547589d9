"""How much noise equal counts need under one budget: of pure epsilon, of our Renyi filter, and what dp-accounting says.

    python tests/benchmarks/bench_accounting.py
    python tests/benchmarks/bench_accounting.py --smoke

Standard deviations of one of m counts that one person changes by 1 each, asked one after the other until the ledger
refuses: ours is what `budget(...).split(m)` gives and the ledger admitted, all of them and not one more. Beside it the
same Laplace noise by the Renyi accountant of dp-accounting at its best order, which is chosen when all is known, and by
its accountant of privacy loss distributions, which needs all questions beforehand: no filter that is adaptive is known
for it. Then one measurement of 100 bins of which a person moves each by 1. Times are CPU of the process.
"""

from __future__ import annotations

import math
import resource
from fractions import Fraction

from flags import flags

import wpinq
from wpinq.core.ledger import Asked, Cost, Ledger
from wpinq.core.ledger.budget import Budget
from wpinq.errors import BudgetError

BUDGETS = [(1, "1e-6"), (Fraction(1, 5), "1e-6"), (1, "1e-9"), (3, "1e-6")]
TARGETS = {(1, "1e-6", 100): 63, (1, "1e-6", 1000): 202}
FLAT = math.sqrt(2)


def cpu() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def admitted(epsilon: Fraction, step: Fraction, budget: object, delta: str, most: int) -> int:
    """How many equal counts a ledger admits."""
    asked = Asked.of("protect", budget, delta, accounting="renyi")
    ledger = Ledger.open(None, name="views", unit="record", terms=asked)
    for number in range(most):
        try:
            ledger.charge(f"{number:08x}", [Cost(epsilon, curve=(epsilon, step))], version="1", label="count")
        except BudgetError:
            return number
    return most


def of_split(budget: object, delta: str, count: int) -> float:
    """The standard deviation of the epsilon that a ledger suggests, in whole steps, once it has admitted them all."""
    asked = Asked.of("protect", budget, delta, accounting="renyi")
    epsilon = Budget.of(Ledger.open(None, name="views", unit="record", terms=asked)).split(count)[0]
    assert admitted(epsilon, epsilon, budget, delta, count) == count
    return math.sqrt(2 / float(epsilon) ** 2 - 1 / 6)


def most_accurate(budget: object, delta: str, count: int) -> float:
    """The same for the finest steps (`mechanism="laplace"`), by bisection over what the ledger admits."""
    low = Budget.of(
        Ledger.open(None, name="views", unit="record", terms=Asked.of("protect", budget, delta, accounting="renyi"))
    ).split(count)[0]
    high = low * Fraction(11, 10)
    for _ in range(14):
        middle = ((low + high) / 2).limit_denominator(10**9)
        fits = admitted(middle, middle / 2**20, budget, delta, count) == count
        low, high = (middle, high) if fits else (low, middle)
    return FLAT / float(low)


def theirs(kind: str, budget: float, delta: float, count: int) -> float:
    """The standard deviation that dp-accounting needs for so many Laplace releases."""
    import dp_accounting
    from dp_accounting import pld, rdp

    def epsilon(scale: float) -> float:
        account = rdp.RdpAccountant() if kind == "rdp" else pld.PLDAccountant(value_discretization_interval=1e-4)
        account.compose(dp_accounting.LaplaceDpEvent(scale), count)
        found: float = account.get_epsilon(delta)
        return found

    low, high = 1.0, 2 * count / budget
    for _ in range(16):
        middle = (low + high) / 2
        low, high = (low, middle) if epsilon(middle) <= budget else (middle, high)
    return FLAT * high


def hundred_bins(pages: int) -> tuple[Fraction, Fraction]:
    """Epsilon that one measurement may cost where a person moves each of so many bins by 1, pure and not."""
    found = []
    for accounting in ("pure", "renyi"):
        views = wpinq.protect(
            [("ann", "home")], budget=1, delta="1e-6", accounting=accounting, columns={"user": str, "page": str},
            unit=wpinq.users("user", at_most=pages),
        )  # fmt: skip
        counted = views.distinct().map("page")
        found.append(counted.left)
        counted.measure(epsilon=counted.left, mechanism="laplace")
    return found[0], found[1]


def main() -> None:
    """Print one line for each budget and number of counts."""
    options = flags(__doc__, "one budget, few counts").parse_args()
    budgets, counts = (BUDGETS[:1], [20]) if options.smoke else (BUDGETS, [10, 20, 100, 1000])
    print("standard deviation of one of m counts")
    print(f"{'epsilon, delta':>16}{'m':>6}{'pure':>10}{'ours':>10}{'ours, fine':>12}{'their RDP':>11}{'their PLD':>11}")
    for budget, delta in budgets:
        for count in counts:
            own, fine = of_split(budget, delta, count), most_accurate(budget, delta, count)
            rest = [theirs(kind, float(budget), float(delta), count) for kind in ("rdp", "pld")]
            pure = FLAT * count / float(budget)
            target = TARGETS.get((budget, delta, count))  # type: ignore[arg-type]
            aim = f"   target {target}" if target else ""
            print(f"{float(budget):>8g}, {delta:>6}{count:>6}{pure:>10.1f}{own:>10.1f}{fine:>12.1f}"
                  f"{rest[0]:>11.1f}{rest[1]:>11.1f}{aim}", flush=True)  # fmt: skip
    pages = 10 if options.smoke else 100
    pure, renyi = (FLAT * pages / float(epsilon) for epsilon in hundred_bins(pages))
    print(f"one measurement of {pages} pages a person, each once: {pure:.1f} pure, {renyi:.1f} ours")
    print(f"{cpu():.0f} s of CPU")


if __name__ == "__main__":
    main()
