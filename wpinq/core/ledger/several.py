"""Charges to several data sets at once, each with a ledger of its own: all are charged, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

from wpinq.core.ledger.ledger import Ledger
from wpinq.core.ledger.rows.chain import Change
from wpinq.core.ledger.sums.accountant import Accountant
from wpinq.core.ledger.sums.cost import Charge
from wpinq.core.ledger.versions import Pin
from wpinq.errors import BudgetError, LedgerError
from wpinq.exact import decimal

Request: TypeAlias = tuple[Ledger, Charge]
"""A charge, and the ledger that is asked for it."""
ChargeKey: TypeAlias = tuple[tuple[int, int], bytes]


@dataclass(frozen=True)
class Price:
    """What some charges would cost one data set now, and what is left of its budget.

    Attributes:
        name: The data set's name.
        epsilon: What would be charged now: 0 for a query that was charged before, and for a part of a partition only
            what exceeds the costliest other part. Rho of Gaussian noise.
        delta: The same of delta.
        left: Epsilon that one more query may cost now, before it is charged; rho where it costs rho.
        left_delta: Delta that is left now.
        after: What `left` would be afterwards.
        fits: Whether the budget of the data set allows it; the cap of an analyst may still refuse it.
        asks: What it costs, for people: "epsilon 0.1".
    """

    name: str
    epsilon: Fraction
    delta: Fraction
    left: Fraction
    left_delta: Fraction
    after: Fraction
    fits: bool
    asks: str

    @property
    def line(self) -> str:
        """What a data set would pay now, and what would be left."""
        if not self.epsilon and not self.delta:
            return f"  now: nothing more to pay; data set {self.name!r} has epsilon {decimal(self.left)} left"
        end = f"and {decimal(self.after)} afterwards" if self.fits else "which is too little"
        delta = f"; delta {decimal(self.delta)} of {decimal(self.left_delta)} left" if self.delta else ""
        left = f"data set {self.name!r} has {decimal(self.left)} left, {end}"
        return f"  now: {self.asks} to pay; {left}{delta}"


def price_lines(prices: Callable[[], Iterable[Price]]) -> list[str]:
    """What each data set would pay now; or why that is not known, where a ledger cannot be read."""
    try:
        return [price.line for price in prices()]
    except LedgerError as error:
        return [f"  what is left is not known: {error}"]


def merged(requests: Iterable[Request]) -> tuple[Request, ...]:
    """The requests of one query, where those to the same ledger and version are added up.

    A unit that is in two sources of one ledger loses the sum.
    """
    result: dict[ChargeKey, Request] = {}
    for ledger, charge in requests:
        before = result.get(_charge_key(ledger, charge))
        every = [charge] if before is None else [before[1], charge]
        within = dict.fromkeys(part for request_charge in every for part in request_charge.within.split("; ") if part)
        both = replace(
            charge,
            costs=tuple(cost for request_charge in every for cost in request_charge.costs),
            within="; ".join(within),
        )
        result[_charge_key(ledger, charge)] = (ledger, both)
    return tuple(result.values())


def distinct(requests: Iterable[Request]) -> list[Request]:
    """The requests of several queries, each once."""
    return list({_charge_key(ledger, charge): (ledger, charge) for ledger, charge in requests}.values())


def charge_all(
    requests: Sequence[Request], pins: Sequence[tuple[Ledger, Pin]] = (), changes: Sequence[tuple[Ledger, Change]] = ()
) -> list[bool]:
    """Charge one measurement to several data sets, or several measurements: all or none.

    All ledgers are locked in one order and checked before the first is written. A crash or a full disk in
    between leaves a charge without an answer, which is free when it is asked again, never an answer without a charge.
    Requests of one question, version and ledger are added up.

    Args:
        requests: The charges.
        pins: What the versions that they read hold now: it is pinned with the first charge, and compared with any.
        changes: Entries of side tables that are written with the charges, or not at all.

    Returns:
        For each request whether it was charged now.

    Raises:
        ChangedError: A version holds other content than was pinned; nothing was written.
        BudgetError: One of them does not fit; nothing was written.
        LedgerError: One of them cannot be trusted or written.
    """
    ledgers = {ledger._store.key: ledger for ledger, _ in [*requests, *changes]}
    with ExitStack() as stack:
        transactions = {key: stack.enter_context(ledgers[key].transaction()) for key in sorted(ledgers)}
        charged: dict[ChargeKey, bool] = {}
        for ledger, pin in pins:
            if ledger._store.key in transactions:  # else nothing is charged to it now, and nothing is pinned
                transactions[ledger._store.key].pin(pin)
        every = merged(requests)
        for place, (ledger, charge) in enumerate(every):
            transaction = transactions[ledger._store.key]
            try:
                charged[_charge_key(ledger, charge)] = transaction.charge(charge)
            except BudgetError as error:
                later = [one for other, one in every[place + 1 :] if other._store.key == ledger._store.key]
                raise _together(error, charge, later, transaction.before, transaction.accountant) from None
        for ledger, change in changes:
            transactions[ledger._store.key].change(change)
        for transaction in transactions.values():
            transaction.commit()
    return [charged[_charge_key(ledger, charge)] for ledger, charge in requests]


def price_all(requests: Sequence[Request]) -> list[Price]:
    """What requests would cost each data set together; nothing is charged.

    Raises:
        LedgerError: A ledger cannot be trusted or read.
    """
    ledgers = {ledger._store.key: ledger for ledger, _ in requests}
    result = []
    for key, ledger in ledgers.items():
        charges = [charge for other, charge in merged(requests) if other._store.key == key]
        with ledger.transaction() as transaction:
            result.append(_price(transaction.accountant, charges))
    return result


def _price(accountant: Accountant, charges: Iterable[Charge]) -> Price:
    spent, promise = accountant.spent, accountant.promise
    after = spent.including(cost for charge in charges if charge.key not in accountant.charges for cost in charge.costs)
    left = promise.rho_left if after.only_gaussian(spent) else promise.left
    return Price(
        accountant.name, after.since(spent), after.delta - spent.delta, left(spent), accountant.left_delta,
        left(after), promise.holds(after) and after.delta <= promise.failing,
        promise.asks(after, spent).removeprefix("costs "),
    )  # fmt: skip


def _together(
    error: BudgetError, charge: Charge, later: Iterable[Charge], before: Accountant, staged: Accountant
) -> BudgetError:
    """The same refusal, where others were to be charged with it: what all cost, beside what is left before any of them.

    Args:
        error: The refusal of the one that did not fit beside the others.
        charge: What it asked.
        later: What was to be charged after it.
        before: The accountant without the charges.
        staged: The accountant with the charges before it.
    """
    new = [charge, *(one for one in later if one.key not in before.charges)]
    promise, spent, after = before.promise, before.spent, staged.spent.including(
        cost for one in new for cost in one.costs)  # fmt: skip
    alone = len(new) == 1 and (spent.epsilon, spent.delta, spent.divergence) == (
        staged.spent.epsilon, staged.spent.delta, staged.spent.divergence)  # fmt: skip
    where = f"of data set {before.name!r}"
    if alone:
        return error
    if after.delta > promise.failing:
        asks, left = f"costs delta {decimal(after.delta - spent.delta)}", before.left_delta
        why = f"{asks} with what is charged beside it, {decimal(left)} is left {where}{promise.told_share}"
        return before.refusal(charge, after.since(spent), before.left, why)
    if promise.holds(after):  # a cap does not
        try:
            before._admit(charge, after)
        except BudgetError as all_of_it:
            return all_of_it
        return error
    whole, left = after.since(spent), promise.rho_left(spent) if after.only_gaussian(spent) else before.left
    asks = promise.asks(after, spent)
    if after.gaussian and not after.only_gaussian(spent):  # no epsilon is a sum of both noises
        whole, left = after.divergence - spent.divergence, promise.limit - spent.divergence
        asks = f"costs {promise.kind} {decimal(whole)}"
    why = f"{asks} with what is charged beside it, {decimal(left)} is left {where}{before.told}"
    return before.refusal(charge, whole, left, why, "budget")


def _charge_key(ledger: Ledger, charge: Charge) -> ChargeKey:
    return ledger._store.key, charge.key
