"""What the rows of a ledger say: read from its checkpoints and the rows after them, each verified, and entered.

**What is verified, and when.** Rows after the last checkpoint have their codes computed at each opening, and so has
that checkpoint; each checkpoint names a digest of the text of the one before. So an accountant is made of what was
written and of nothing else, whatever was done to the file. Rows before the last checkpoint decide nothing: they are
verified by the digests that the checkpoints hold of them, whenever the file is not known to be as it was when that was
last done (`file.py`). What a process knows goes on from its own last row, which must be in the file still.

Source: privacy rules 38 and 39.
"""

from __future__ import annotations

import json
from hmac import compare_digest
from typing import Any

from wpinq.core.ledger.rows import chain
from wpinq.core.ledger.rows.chain import RefusedError, Row
from wpinq.core.ledger.rows.secret import Secret
from wpinq.core.ledger.rows.side import Turn
from wpinq.core.ledger.stores.store import Pages
from wpinq.core.ledger.sums.accountant import Accountant, Entry
from wpinq.core.ledger.sums.checkpoint import EVERY, digest
from wpinq.errors import WpinqError

OTHER_VERSION = "its rows were written by another version of wpinq; use that version."


def caught_up(pages: Pages, secret: Secret, known: Accountant, turn: Turn) -> Accountant:
    """What all rows say.

    Args:
        pages: The locked ledger.
        secret: The data set's secret.
        known: What an earlier transaction has entered; what came since is entered in it, where its rows are there.
        turn: That of the side tables, which the head names too.

    Raises:
        RefusedError: The rows or the head cannot be trusted.
    """
    if known.last is None or known.torn:
        start, whole = Accountant(), not pages.untouched
        last = pages.last - pages.last % EVERY
        checkpoints = verified(pages, secret, last, whole=whole)
        if checkpoints:
            start = _resumed([body for _, body in checkpoints], checkpoints[-1][0])
        _extends(pages, secret, start, last, turn)
        return start
    if pages.untouched and _extends(pages, secret, known, known.last.number, turn):
        return known
    last = pages.last - pages.last % EVERY
    verified(pages, secret, last, whole=True)
    if not _extends(pages, secret, known, min(last, known.last.number), turn):
        raise RefusedError("it is another ledger than the one that was opened; open it again.")
    return known


def verified(pages: Pages, secret: Secret, last: int, *, whole: bool) -> list[tuple[Row, dict[str, Any]]]:
    """All checkpoints, and what each says.

    Args:
        pages: The locked ledger.
        secret: The data set's secret.
        last: The number of the last one; 0 where there is none.
        whole: Whether the rows before them are verified too.

    Raises:
        RefusedError: One of them is not what was written.
    """
    result: list[tuple[Row, dict[str, Any]]] = []
    before = ""
    for number in range(EVERY, last + 1, EVERY):
        row = _row(pages, number)
        body = _body(row)
        if body["before"] != before or (whole and body["rows"] != pages.digest(number - EVERY, number)):
            raise RefusedError(chain.EDITED)
        before = digest(row.body)
        result.append((row, body))
    if result and not compare_digest(chain.link(secret, _row(pages, last - 1), row.body).mac, row.mac):
        raise RefusedError(chain.EDITED)
    return result


def _row(pages: Pages, number: int) -> Row:
    row = next(pages.rows(number), None)
    if row is None or row.number != number:
        raise RefusedError(chain.EDITED)
    return row


def _body(row: Row) -> dict[str, Any]:
    try:
        body = json.loads(row.body)
        return {"before": body["before"], "rows": body["rows"], **body}
    except (ValueError, KeyError, TypeError):
        raise RefusedError(chain.EDITED) from None


def _resumed(bodies: list[dict[str, Any]], last: Row) -> Accountant:
    try:
        return Accountant.resumed(bodies, last)
    except (WpinqError, KeyError, ValueError, TypeError, AttributeError):
        raise RefusedError(OTHER_VERSION) from None


def _extends(pages: Pages, secret: Secret, start: Accountant, first: int, turn: Turn) -> bool:
    """Enter the rows that came after those that an accountant has, if it has rows of this ledger.

    Args:
        pages: The locked ledger.
        secret: The data set's secret.
        start: The accountant.
        first: The number of the row that is trusted; codes of all after it are computed. 0 for none.
        turn: That of the side tables.

    Raises:
        RefusedError: The rows or the head cannot be trusted.
    """
    known, draft = start.last, start.draft() if start.last else start
    rows = pages.rows(first or None)
    last = next(rows, None) if first else None
    if first and (last is None or last.number != first):
        return False
    ours = known is None or (last is not None and _same(last, known))
    for row in chain.follow(secret, last, rows):
        last = row
        ours = ours or (known is not None and _same(row, known))
        if ours and (known is None or row.number > known.number):
            enter(draft, row)
    head = pages.head()
    if chain.behind(secret, list(pages.rows(max(head.number, 1))), turn.behind, head):
        pages.adopt(chain.head(secret, last, turn.number, turn.code))
    if ours and draft is not start:
        start.settled(draft)
    return ours


def _same(row: Row, known: Row) -> bool:
    return row.number == known.number and compare_digest(row.mac, known.mac)


def replayed(pages: Pages, secret: Secret, known: Accountant) -> list[Entry]:
    """All rows, from the first, each of which is verified and entered again.

    Raises:
        RefusedError: They are not what was verified before.
    """
    fresh = Accountant()
    entries = [Entry(**enter(fresh, row)) for row in chain.follow(secret, None, pages.rows(None))]
    if fresh != known:
        raise RefusedError(chain.EDITED)
    return entries


def enter(accountant: Accountant, row: Row) -> dict[str, Any]:
    """Enter a row that was read; its code was right, so only another version of wpinq explains a failure."""
    try:
        return accountant.apply(json.loads(row.body), row)
    except (WpinqError, KeyError, ValueError, TypeError, AttributeError):
        raise RefusedError(OTHER_VERSION) from None
