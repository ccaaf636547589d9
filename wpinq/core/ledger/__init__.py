"""The durable budget: what was charged to a data set, safe under threads, processes and crashes."""

from wpinq.core.ledger.ledger import Ledger
from wpinq.core.ledger.open import Asked
from wpinq.core.ledger.rows.chain import Change
from wpinq.core.ledger.several import Price, Request, charge_all, distinct, merged, price_all
from wpinq.core.ledger.sums.accountant import Entry
from wpinq.core.ledger.sums.cost import Charge, Cost
from wpinq.core.ledger.versions import wording

__all__ = [
    "Asked", "Change", "Charge", "Cost", "Entry", "Ledger", "Price", "Request", "charge_all", "distinct", "merged",
    "price_all", "wording",
]  # fmt: skip
