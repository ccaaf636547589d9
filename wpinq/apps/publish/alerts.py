"""A word to the curator when the budget's end is near; that it cannot be said stops nothing."""

from __future__ import annotations

from urllib.parse import urlsplit

from wpinq.apps.publish.budgets import Funds
from wpinq.apps.publish.file.declared import Alerts
from wpinq.apps.publish.state import Register
from wpinq.errors import SourceError
from wpinq.exact import decimal
from wpinq.streaming.sinks.http import HttpService
from wpinq.streaming.sinks.sink import Release as Posted


def told(alerts: Alerts, release: str, funds: Funds, register: Register, at: str) -> str | None:
    """Post it once, when less than the share that the release file says is left of a budget.

    The content is fixed but for public amounts: `{"event": "budget", "release", "unit", "budget", "left", "below"}`.
    One that was not taken is posted again the next time.

    Returns:
        Why the post was not taken; None where it was, or none was due.
    """
    if funds.left >= funds.total * alerts.below:
        return None
    what = f"budget {decimal(funds.total)}{f' in {funds.stretch}' if funds.stretch else ''}"
    if register.alerted(what):
        return None
    content = {
        "event": "budget", "release": release, "unit": funds.unit, "budget": decimal(funds.total),
        "left": decimal(funds.left), "below": alerts.below, **({"in": funds.stretch} if funds.stretch else {}),
    }  # fmt: skip
    try:
        HttpService(alerts.webhook, "application/json").deliver(Posted(release, 0, [content]))
    except SourceError:  # whose text has the webhook's path, which may be a secret
        return f"alert: {urlsplit(alerts.webhook).hostname} did not take what is left of the budget; it is told again."
    register.alert(what, at)
    return None
