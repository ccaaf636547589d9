"""What an audit sees of a run: every question, the histogram that it was answered from, and what was said.

It patches methods while it runs, so that the package itself keeps no way to look at a true histogram. Where
answers are replayed, questions are answered from the histograms of another run, as the same question was there: then
whatever a script does with noisy answers is the same in both, and what still differs comes from the records.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

from wpinq.core.engines import installed, local
from wpinq.core.engines import select as engine_choice
from wpinq.core.engines.job import Job
from wpinq.core.measurements import query
from wpinq.core.measurements import select as selections
from wpinq.core.measurements.continual import EveryEpoch
from wpinq.core.measurements.measurement import Measurement
from wpinq.core.measurements.query import ChargedQuery
from wpinq.core.runs import key_recovery
from wpinq.core.state.histogram import Histogram, is_steps

Content = dict[tuple[int, ...], int]
"""Weights in units of 1/resolution, by identity or by the start and the end of a step."""


def _flow(job: Job) -> list[Histogram]:
    """By bytewax, where it is installed."""
    if not installed():
        return local.run(job)
    from wpinq.core.engines.bytewax import flow

    return flow.run(job)


ENGINES: dict[str, Callable[[Job], list[Histogram]]] = {
    "local": local.run,
    "bytewax": _flow,
    "shards": lambda job: _flow(replace(job, shards=3)),
}


@dataclass(eq=False)
class Asked:
    """One question.

    Attributes:
        question: The object.
        content: Its histogram; None as long as it has no answer.
        changes: Of a continual one, by epoch.
        taus: Thresholds of what was released, in steps of the noise.
        histogram: What answered it, and what a replay answers from.
    """

    question: ChargedQuery
    content: Content | None = None
    changes: dict[int, Content] = field(default_factory=dict)
    taus: list[int] = field(default_factory=list)
    histogram: Histogram | None = None

    @property
    def paid(self) -> bool:
        """Whether it was charged; a quote alone has no answer."""
        return self.question in query._paid

    @property
    def title(self) -> str:
        """How people tell it from others."""
        return repr(self.question.name or self.question.node.title)


@dataclass
class Seen:
    """A run.

    Attributes:
        questions: Every question, in the order of their making.
        output: What was printed, by the script and by the library.
        named: Tables of names that were published, for a replay.
    """

    questions: list[Asked] = field(default_factory=list)
    output: str = ""
    named: list[Any] = field(default_factory=list)


@contextlib.contextmanager
def watched(engine: str, replay: Seen | None = None) -> Iterator[Seen]:
    """Note every question and its histogram; compute finite plans by one engine."""
    observed, out = Seen(), io.StringIO()
    with contextlib.ExitStack() as stack:
        for owner, name, new in (*_patches(observed, replay), (engine_choice, "finite", lambda _: ENGINES[engine])):
            stack.enter_context(patch.object(owner, name, new))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(out))
        caught = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        yield observed
    observed.output = out.getvalue() + "".join(f"{warning.message}\n" for warning in caught)


def _patches(observed: Seen, replay: Seen | None) -> list[tuple[Any, str, Any]]:
    """What stands in for the methods through which questions, histograms and names go."""
    made: dict[int, Asked] = {}
    init, answer, receive = ChargedQuery.__init__, ChargedQuery.answer_from, EveryEpoch.receive
    passing, names = Measurement._passing, key_recovery.names_of

    def created(self: ChargedQuery, *args: Any, **options: Any) -> None:
        init(self, *args, **options)
        made[id(self.quote)] = Asked(self)
        observed.questions.append(made[id(self.quote)])

    def answered(self: ChargedQuery, histogram: Histogram) -> None:
        mine = made[id(self.quote)]
        mine.content, mine.histogram = content(self, histogram), histogram
        number = observed.questions.index(mine)
        old = replay.questions[number] if replay and number < len(replay.questions) else None
        if old is None or old.histogram is None:
            answer(self, histogram)
        else:
            answer(self, old.histogram)
            self._words = old.question._words

    def received(self: EveryEpoch, epoch: int, change: Histogram) -> None:
        mine = made[id(self.quote)]
        mine.changes[epoch] = content(mine.question, change)
        receive(self, epoch, change)

    def passed(self: Measurement, tau: int) -> Any:
        made[id(self.quote)].taus.append(tau)
        return passing(self, tau)

    def named(node: Any, chosen: Any) -> Any:
        old = replay.named[len(observed.named)] if replay and len(observed.named) < len(replay.named) else None
        observed.named.append(names(node, chosen) if old is None else old)
        return observed.named[-1]

    return [
        (ChargedQuery, "__init__", created), (ChargedQuery, "answer_from", answered),
        (EveryEpoch, "receive", received), (Measurement, "_passing", passed),
        (key_recovery, "names_of", named), (selections, "names_of", named),
    ]  # fmt: skip


def windowed(question: ChargedQuery) -> bool:
    """Whether it is answered window by window."""
    return isinstance(question, Measurement) and question.times.window is not None


def content(question: ChargedQuery, histogram: Histogram) -> Content:
    """The exact weights of a histogram, as Python integers."""
    ids, weights = histogram.content()
    if weights.ndim == 2:
        numbers = [int(high) << 64 | int(low) for low, high in weights.tolist()]
        numbers = [number - 2**128 if number >= 2**127 else number for number in numbers]
    else:
        numbers = [int(weight) for weight in weights.tolist()]
    keys = ids.view("int64") if is_steps(question.node.schema) else ids
    return dict(zip(map(tuple, keys.tolist()), numbers, strict=True))


def steps_apart(first: Content, second: Content) -> Iterator[int]:
    """The differences of two functions of the whole numbers that change at few places, one for each number."""
    edges: dict[int, int] = {}
    for sign, function in ((1, first), (-1, second)):
        for (start, end), weight in function.items():
            edges[start] = edges.get(start, 0) + sign * weight
            edges[end] = edges.get(end, 0) - sign * weight
    height, at = 0, 0
    for edge in sorted(edges):
        if height:
            yield abs(height) * (edge - at)
        height, at = height + edges[edge], edge


def differences(first: Content, second: Content, *, steps: bool) -> Sequence[int]:
    """By how much each bin moves; a step of many equal bins is one number, their sum."""
    if steps:
        return list(steps_apart(first, second))
    return [abs(first.get(key, 0) - second.get(key, 0)) for key in {*first, *second}]
