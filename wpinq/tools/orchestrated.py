"""One period of a release as an orchestrator runs it, and what it keeps of that: the price, and what is left."""

from functools import partial
from typing import Any

from wpinq.apps.publish import Release
from wpinq.errors import redacted


def published(release: Release, period: str, *, openlineage: bool) -> dict[str, Any]:
    """Publish a period, exactly once, however often it is asked.

    Args:
        release: The release.
        period: The period's name.
        openlineage: Whether to emit OpenLineage events, which takes `wpinq[openlineage]`.

    Raises:
        WpinqError: It could not be. Orchestrators keep tracebacks, and those of other errors could quote records.
    """
    run = release.run
    if openlineage:
        from wpinq.tools.lineage import publish

        run = partial(publish, release)
    outcome = redacted("publish", lambda: run(period))
    funds = release.funds()
    prices = {name: float(amount) for name, amount in vars(outcome.price).items() if amount}
    left = {f"{funds.unit} left": float(funds.left), f"{funds.unit} in all": float(funds.total)}
    return {"period": period, "done": outcome.done, **prices, **left}
