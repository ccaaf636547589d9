"""Whether a published period is what was charged, computed and delivered: its files, its sinks, its costs, its answers.

The register is covered by the codes of the ledger, and each entry holds a digest of all files of the period. So what
was changed since, by somebody without the secret, shows: a file beside the ledger, a file or a row of a sink, an entry.
What the evidence says of costs is compared with what the questions cost and with the rows of the ledger, and the tables
with a new computation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from wpinq.apps.publish.budgets import BEFORE
from wpinq.apps.publish.evidence.edition import FACTS, REPORT
from wpinq.apps.publish.evidence.report import plain
from wpinq.apps.publish.price import Price
from wpinq.errors import SourceError

if TYPE_CHECKING:
    from wpinq.apps.publish.file.periods import Period
    from wpinq.apps.publish.publisher import Publisher
    from wpinq.apps.publish.questions import Asked
    from wpinq.apps.publish.state import Record
    from wpinq.core import Ledger

UNSAID = ("digest", BEFORE)
"""Of a record's facts, what its evidence does not hold."""


def differences(publisher: Publisher, period: Period) -> list[str]:
    """What differs of a period; nothing is charged.

    Raises:
        SourceError: It was never published, or its records are gone, or its questions are others.
        ChangedError: Its records are others.
        LedgerError: The ledger or the register was changed.
    """
    record = publisher.register.records().get(period.name)
    if record is None or "digest" not in record.facts:
        raise SourceError(f"{period.name}: was never published.")
    try:
        edition = publisher.edition(period)
    except SourceError as error:
        return [str(error).removeprefix(f"{period.name}: ")]
    faults = [sink.differs(edition) for sink in publisher.places]
    for root, files in publisher.shown():
        faults += [f"{root / name}: is another than the periods give" for name, content in files.items()
                  if not (root / name).is_file() or (root / name).read_bytes() != content]  # fmt: skip
    evidence = json.loads(edition.files[FACTS])
    if evidence != {name: fact for name, fact in record.facts.items() if name not in UNSAID}:
        faults.append(f"{FACTS}: says other facts than the register")
    if record.definition != publisher.definition:
        raise SourceError(f"{period.name}: the questions or keys changed since; put the old file back.")
    if publisher.opening.intake is not None:  # no record and no noise is left to compute anything from
        return [fault for fault in faults if fault is not None]
    ledger, questions = publisher.asked_again(period, record)
    faults += costs(evidence, ledger, questions, record)
    if f"| cost of this period | {plain(Price.read(evidence['cost']).text)} |" not in edition.files[REPORT].decode():
        faults.append(f"{REPORT}: says another cost")
    if not any(faults):
        fresh = publisher.recompute(questions)
        faults += [
            f"{name}: computed otherwise" for name, content in fresh.items() if edition.files.get(name) != content
        ]
    return [fault for fault in faults if fault is not None]


def costs(evidence: Mapping[str, Any], ledger: Ledger, questions: list[Asked], record: Record) -> Iterator[str]:
    """How what the evidence says of costs differs from what the questions cost, and from the rows of the ledger."""
    stated = {priced["name"]: Price.read(priced) for priced in evidence["questions"]}
    if stated != {priced.question.name: priced.price for priced in questions}:
        yield f"{FACTS}: says other costs of questions than they have"
    whole = sum((priced.price for priced in questions), Price())
    if Price.read(evidence["cost"]) != whole or Price.read(record.facts["cost"]) != whole:
        yield f"{FACTS}: says another cost than the questions have together"
    number, code = evidence["ledger"]["rows"], evidence["ledger"]["head"]
    if ledger.code_of_row(number) != code:
        yield f"{FACTS}: row {number} of the ledger has another code"
    charges = [charge for priced in questions for quote in priced.quotes for _, charge in quote.charges]
    keys = {ledger.shown(charge) for charge in charges}
    rows = [row for row in ledger.entries() if (row.question, row.version) in keys and row.kind == "charge"]
    if {(row.question, row.version) for row in rows} != keys or any(row.number > number for row in rows):
        yield f"{FACTS}: not all of its questions were charged by row {number} of the ledger"
    for what in ("epsilon", "delta", "divergence"):
        charged = sum((getattr(row, what) or Fraction(0) for row in rows), Fraction(0))
        if charged > getattr(whole, what) and (what != "divergence" or ledger.curves):
            yield f"{FACTS}: the ledger has charged more {what} for its questions"
