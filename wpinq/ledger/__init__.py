"""The durable budget: what was charged to a data set, safe under threads, processes and crashes."""

from wpinq.ledger.accountant import Entry
from wpinq.ledger.allowance import Allowance, allowances, caps
from wpinq.ledger.charge import Charge, wording
from wpinq.ledger.cost import Cost
from wpinq.ledger.ledger import Ledger
from wpinq.ledger.opening import Asked
from wpinq.ledger.several import Price, Request, charge_all, distinct, merged, price_all

__all__ = [
    "Allowance", "Asked", "Charge", "Cost", "Entry", "Ledger", "Price", "Request", "allowances", "caps", "charge_all",
    "distinct", "merged", "price_all", "wording",
]  # fmt: skip
