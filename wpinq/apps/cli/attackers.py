"""What `wpinq demo` computes: made-up people, exact tables, and attackers who know everybody but one of them.

No protected record comes here. Its exact numbers are of people who are made up in the same process.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, sqrt
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

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
