"""`wpinq demo`: what an attacker, who knows everybody but one person, reads in exact tables and in noisy ones.

No protected record comes here. The exact numbers are of people who are made up in the same process.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import exp, sqrt
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from wpinq import Answer
    from wpinq.apps.remote.wire import Priced
    from wpinq.collection import Collection
    from wpinq.exact import Amount

DEPARTMENTS = ("care", "kitchen", "office", "transport")
GIVEN = (
    "Ada", "Ben", "Cem", "Dora", "Eve", "Finn", "Gus", "Hana", "Ida", "Jan", "Kim", "Lea", "Max", "Nia", "Ole", "Pia",
    "Quin", "Rosa", "Sam", "Tom", "Uma", "Vito", "Wim", "Xena", "Yara", "Zoe",
)  # fmt: skip
INITIALS = "ABCDEF"
LIMIT = 10
"""Sick days; who has more is counted."""
USUAL, MOST = 7, 60
"""Sick days of a person on average, and at the most."""
MANY = 2_000
"""Attackers in each of the two worlds."""

Person = tuple[str, str, int]
COLUMNS = {"person": str, "department": str, "sick_days": int}


@dataclass(frozen=True)
class Company:
    """People who do not exist.

    Attributes:
        people: Name, department and sick days of each.
        leaver: The one of them, with more than LIMIT sick days, who is gone in the next month.
    """

    people: Sequence[Person]
    leaver: Person

    @property
    def next_month(self) -> list[Person]:
        """The same people without the one who left."""
        return [person for person in self.people if person != self.leaver]


def made_up_company(seed: int) -> Company:
    """People of a company, the same for the same seed."""
    random = Random(seed)  # noqa: S311  it makes people up; noise comes from the sampler
    names = [f"{first} {initial}." for first in GIVEN for initial in INITIALS]
    random.shuffle(names)
    days = [min(int(random.expovariate(1 / USUAL)), MOST) for _ in names]
    days[0] = random.randint(LIMIT + 1, 3 * LIMIT)
    people = [(name, random.choice(DEPARTMENTS), many) for name, many in zip(names, days, strict=True)]
    return Company(sorted(people), people[0])


def table(people: Sequence[Person]) -> dict[str, int]:
    """How many of each department had more than LIMIT sick days, exactly."""
    return {
        department: sum(many > LIMIT for _, where, many in people if where == department) for department in DEPARTMENTS
    }


def answers(true: int, epsilon: Amount, many: int = MANY) -> NDArray[np.int64]:
    """What so many attackers are answered, each once, where the true count is this: noise as a question gets it.

    One measurement has a bin for each of them, and noise of its own in each bin, under a secret drawn now.
    """
    import numpy as np
    import polars as pl

    import wpinq

    frame = pl.DataFrame({"attacker": np.repeat(np.arange(many), true)})
    counts = wpinq.protect(frame, epsilon, name=f"count {true}", version="made up").measure(epsilon)
    return np.asarray(counts.observe_many(range(many)).round(), dtype=np.int64)


def right(without: NDArray[np.int64], with_: NDArray[np.int64], true: int) -> float:
    """How often the best guess is right, over both worlds alike: "counted" from the true count with the person on."""
    return float(((without < true).mean() + (with_ >= true).mean()) / 2)


def bound(epsilon: float) -> float:
    """The share of right guesses that nobody exceeds who holds both worlds for equally likely.

    Whatever is seen is at most e^epsilon times as likely in one world as in the other, so these are the odds. Source:
    Wasserman, Zhou, A Statistical Framework for Differential Privacy, JASA 105(489), 2010, theorem 2.4, for tests.

    >>> round(bound(1), 3), bound(0)
    (0.731, 0.5)
    """
    return 1 / (1 + exp(-epsilon))


def spread(share: float, draws: int) -> float:
    """How far a share of so many draws is from its expectation, in two standard deviations."""
    return 2 * sqrt(share * (1 - share) / draws)


WIDTH, BAR = 79, 24
"""Columns of a terminal that are used, in all and for a bar."""
EPSILON, NAME = Fraction(1), "over ten sick days"
QUERY = f"SELECT department, COUNT(*) AS c FROM people WHERE sick_days > {LIMIT} GROUP BY department"  # noqa: S608  ours
CALLS = f'people.filter(pl.col("sick_days") > {LIMIT}).count(by="department")'
"""The question in SQL, and as calls, for which no extra is needed."""
NEXT = (
    "Your own records: wpinq sql --help; with --explain it charges nothing.",
    "The first hour, from a log to synthetic data: wpinq/docs/tutorial.md",
    "Before you publish, what is not promised: wpinq/docs/vulnerabilities.md",
)
ASIDE = 3
"""Rows of the histograms on either side of the two true counts."""


def demo(
    seed: Annotated[int, typer.Option(help="Chooses the people that are made up; noise is another in each run.")] = 1,
) -> None:
    """See on made-up people what exact counts tell an attacker, what noisy ones do, and what they cost.

    It takes seconds, reads no file, and leaves none: its ledger is removed at the end.
    """
    company = made_up_company(seed)
    _say(f"{len(company.people)} people of a company that does not exist (--seed {seed}). They are made up, so their "
         "exact numbers may be shown here; of real people you would see the noisy ones alone.")  # fmt: skip
    _exact(company)
    with TemporaryDirectory(prefix="wpinq-demo-") as folder:
        people = _protected(company, Path(folder) / "ledger")
        ask = _priced(people)
        answer = ask()
        _answered(answer, table(company.people))
        _attacked(company)
        _paid(people, ask, answer)
    _title(6, "Where to go next")
    for line in NEXT:
        typer.echo(line)


def _say(text: str, before: str = "") -> None:
    typer.echo(before + textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False))


def _title(number: int, text: str) -> None:
    typer.echo(f"\n{number}. {text}\n{'-' * (len(text) + 3)}")


def _exact(company: Company) -> None:
    """The exact tables of two months, and what their difference is."""
    from wpinq.apps.cli.show import aligned

    march, april = table(company.people), table(company.next_month)
    name, where, days = company.leaver
    _title(1, "What an office publishes: exact counts")
    _say(f"People with more than {LIMIT} sick days, in two months:")
    rows = [
        ("department", "March", "April"),
        *((department, str(march[department]), str(april[department])) for department in DEPARTMENTS),
    ]
    typer.echo(f"\n{aligned([*rows, ('all', str(sum(march.values())), str(sum(april.values())))])}")

    _title(2, "What an attacker reads there")
    read = march[where] - april[where]
    _say(f"Colleagues know that nobody came, and that only {name} of {where} left. So {march[where]} - {april[where]} "
         f"= {read}: {name} had more than {LIMIT} sick days. True: it was {days}.")  # fmt: skip
    others = sum(march[department] for department in DEPARTMENTS if department != where)
    _say(f"To hide the row of {where} does not help: the total less the other rows is {sum(march.values())} - {others} "
         f"= {sum(march.values()) - others}.")  # fmt: skip


def _protected(company: Company, ledger: Path) -> Collection:
    import polars as pl

    import wpinq

    frame = pl.DataFrame(company.people, schema=COLUMNS, orient="row")
    person = wpinq.users("person", at_most=1)
    return wpinq.protect(frame, EPSILON, unit=person, ledger=ledger, name="people", version="March")


def _question(people: Collection) -> tuple[str, Priced, Callable[[], Answer]]:
    """What is asked, its price, and what charges and asks it: in SQL where there is the extra, else as calls."""
    from wpinq.errors import lacking

    if not lacking("sql"):
        from wpinq.apps.remote.pricing import priced_sql
        from wpinq.query import quoted

        priced_query = quoted(QUERY, {"people": people}, epsilon=EPSILON, keys=DEPARTMENTS, name=NAME)
        return QUERY, priced_sql(priced_query, None), priced_query.charge
    import polars as pl

    from wpinq.aggregates.expected_noise import expected_noise
    from wpinq.apps.remote.pricing import priced

    counted = people.filter(pl.col("sick_days") > LIMIT)
    quote = counted.map("department").quote(epsilon=EPSILON, name=NAME)
    count = partial(counted.count, EPSILON, by="department", keys=DEPARTMENTS, name=NAME)
    return CALLS, priced([quote], None, [expected_noise(quote, "c")]), count


def _priced(people: Collection) -> Callable[[], Answer]:
    """Show the price of the question, before it is charged.

    Returns:
        What charges and asks it.
    """
    from wpinq.apps.cli.show import protects_line
    from wpinq.apps.remote.answers import RemoteQuote

    words, price, ask = _question(people)
    _title(3, "The same question under differential privacy")
    _say(f"{words}, at epsilon {EPSILON}. {protects_line(people._node)}")
    typer.echo(f"\nThe price, before anything is charged or counted:\n{RemoteQuote(price)}\n")
    return ask


def _answered(answer: Answer, true: dict[str, int]) -> None:
    """The noisy counts with their intervals, as bars, beside the exact ones."""
    from wpinq.apps.cli.show import aligned
    from wpinq.html.numbers import noisy

    pairs = zip(answer.rows, answer.intervals, strict=True)
    bars = [(row[0], round(row[1]), *ends[1]) for row, ends in pairs if ends[1] is not None]
    unit = max(1.0, max(high for *_, high in bars) / (2 * BAR))
    rows = [(department, noisy(value, (high - low) / 2), str(true[department]), bar(low, value, high, unit))
            for department, value, low, high in bars]  # fmt: skip
    typer.echo(aligned([("department", "noisy", "exact", "# to the interval's low end, | the answer"), *rows]))
    _say("Each interval holds the exact count, but for noise, with probability 95%.", "\n")


def bar(low: float, value: float, high: float, unit: float) -> str:
    """An interval as text: what is below it, the interval, and the answer in it.

    >>> bar(2, 5, 8, 1), bar(-3, 0, 3, 1)
    ('##---|---', '|---')
    """
    start, at, end = (max(round(number / unit), 0) for number in (low, value, high))
    return "#" * start + "-" * (at - start) + "|" + "-" * (end - at)


def _attacked(company: Company) -> None:
    """What many attackers see in two worlds that differ by one person, and how often the best guess is right."""
    name, where, _ = company.leaver
    true = table(company.people)[where]
    without, with_ = answers(true - 1, EPSILON), answers(true, EPSILON)
    share, limit = right(without, with_, true), bound(float(EPSILON))
    _title(4, f"{MANY:,} attackers in each of two worlds")
    _say(f"Each knows everybody of {where} but {name}, so the exact count is {true - 1} or {true}. Each is given one "
         f"noisy answer, of the sampler that answered above. What they see:")  # fmt: skip
    typer.echo(f"\n{histograms(without, with_, true, name)}\n")
    _say(f"The best guess is '{name} is counted' from {true} on. It was right for {share:.1%} of them. The bound "
         f"e^{EPSILON} / (1 + e^{EPSILON}) is {limit:.1%}: whoever holds both worlds for equally likely is not right "
         f"more often in the long run. Of {2 * MANY:,} guesses the share is within {spread(limit, 2 * MANY):.1%} of "
         f"what is expected, 19 times in 20.")  # fmt: skip
    _say("From the exact tables the guess is always right; a coin is right half of the time.")


def histograms(without: NDArray[np.int64], with_: NDArray[np.int64], true: int, name: str) -> str:
    """How often each answer was seen in each world, in percent and as bars; the ends hold all beyond."""
    from wpinq.apps.cli.show import aligned

    low, high = true - 1 - ASIDE, true + ASIDE
    answers = range(low, high + 1)
    shares = [[float((world.clip(low, high) == answer).mean()) for answer in answers] for world in (without, with_)]
    unit = max(map(max, shares)) / BAR
    ends = {low: f"{low} or less", high: f"{high} or more"}
    rows = [
        (ends.get(answer, str(answer)), *(f"{share:6.1%} {'#' * round(share / unit)}" for share in pair))
        for answer, *pair in zip(answers, *shares, strict=True)
    ]
    heads = [f"{true - 1}, {name} is not counted", f"{true}, {name} is counted"]
    return aligned([("answer", *(head.ljust(BAR + 8) for head in heads)), *rows])


def _paid(people: Collection, ask: Callable[[], Answer], answer: Answer) -> None:
    """Show the ledger, and what it refuses."""
    from wpinq.apps.cli.show import aligned
    from wpinq.core import sources
    from wpinq.errors import BudgetError
    from wpinq.exact import decimal

    ledger = sources(people._node)[0].ledger
    _title(5, "What it cost")
    rows = [
        (str(entry.number), entry.kind, entry.label, decimal(entry.epsilon) if entry.epsilon else "")
        for entry in ledger.entries() if not entry.internal
    ]  # fmt: skip
    typer.echo(aligned([("row", "what", "on", "epsilon"), *rows]))
    _say("Of the ledger. Rows that only guard answers are not shown.", "\n")
    left = ledger.remaining()
    same = ask().rows == answer.rows and ledger.remaining() == left
    again = "the same answer, and costs nothing" if same else "another answer"
    _say(f"{decimal(left)} of the budget of {decimal(ledger.budget)} is left. The same question, asked again, has "
         f"{again}. A new one, how many people there are, is refused:")  # fmt: skip
    try:
        people.count(epsilon=EPSILON, name="staff")
    except BudgetError as error:
        _say(str(error).partition(" Ask for less")[0])
    _say("The table of April would be a new question too. Where a budget allows both months, they tell together what "
         f"epsilon {2 * EPSILON} tells at the most.")  # fmt: skip
