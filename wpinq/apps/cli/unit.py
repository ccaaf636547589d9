"""`--unit` and what goes with it: whom a command protects, and what is done to each record before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from wpinq.errors import PlanError

if TYPE_CHECKING:
    from wpinq import Unit

UnitColumn = Annotated[
    str | None,
    typer.Option(
        "--unit",
        help="Protect people: all records with one value of this column are one person's. Goes with --at-most or "
        "--shared; without these all records of a person are kept, and what nothing bounds is refused. Without it one "
        "record is protected, not a person.",
        metavar="COLUMN",
        show_default=False,
    ),
]
AtMost = Annotated[
    str | None,
    typer.Option(
        "--at-most",
        help="With --unit: how many records of each person are kept, as a sample; or auto, with --bound-epsilon, or "
        "in 'sql' without it: a part of --epsilon chooses it, half for one total, less for many groups.",
        metavar="N|auto",
        show_default=False,
    ),
]
BoundEpsilon = Annotated[
    str | None,
    typer.Option(
        "--bound-epsilon",
        help="With --at-most auto: spend this on choosing it, privately, once for each version of the records.",
        metavar="EPSILON",
        show_default=False,
    ),
]
BoundBins = Annotated[
    str | None,
    typer.Option(
        "--bound-bins",
        help="With --at-most auto: how many bins answers have, and at which epsilon, such as 500@0.5; by default 1@1.",
        metavar="BINS[@EPSILON]",
        show_default=False,
    ),
]
Per = Annotated[
    str | None,
    typer.Option(
        "--per",
        help="With --at-most: how many of these may have one value of a column, such as page=1.",
        metavar="COLUMN=N",
        show_default=False,
    ),
]
Shared = Annotated[
    bool, typer.Option("--shared", help="With --unit: keep all records; those of one person share a weight of 1.")
]
Period = Annotated[
    str | None,
    typer.Option(
        "--period",
        help="With --unit and --at: protect what a person did in one such stretch of time only: 1h, 1d, 1w, 1mo.",
        metavar="LENGTH",
        show_default=False,
    ),
]
At = Annotated[
    str | None,
    typer.Option("--at", help="With --period: the column of the time.", metavar="COLUMN", show_default=False),
]
Zone = Annotated[
    str | None,
    typer.Option(
        "--zone",
        help="With --period: whose clocks it follows, such as Europe/Berlin; by default UTC.",
        metavar="ZONE",
        show_default=False,
    ),
]
Through = Annotated[
    str | None,
    typer.Option(
        "--through",
        help="Where records do not name the person, the way to who owns them: a column, and the table and column that "
        "it is looked up in, such as l_orderkey=orders.o_orderkey. The table is one of --from, or comes by --owners.",
        metavar="COLUMN=TABLE.COLUMN",
        show_default=False,
    ),
]
Owners = Annotated[
    str | None,
    typer.Option(
        "--owners",
        help="With --through: the table that names the person, by the column of --unit, such as orders=orders.parquet.",
        metavar="TABLE=INPUT",
        show_default=False,
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        "--where",
        help='Which records are counted at all, as an SQL condition on each: "status = 200". It is asked before the '
        "records of a person are bounded, so what it leaves out takes no place.",
        metavar="CONDITION",
        show_default=False,
    ),
]
Derive = Annotated[
    list[str] | None,
    typer.Option(
        "--derive",
        help="A column that is computed of each record before: page='lower(page)'; can be given many times.",
        metavar="NAME=EXPR",
        show_default=False,
    ),
]


OWNER = "the owner, by --through"
"""Stands for the column of the owner until the owner table is opened."""


def read_unit(
    column: str | None, at_most: str | None, chosen: tuple[str | None, str | None] = (None, None), *,
    per: str | None, shared: bool, period: str | None = None, at: str | None = None, zone: str | None = None,
) -> Unit | None:  # fmt: skip
    """Whom to protect; None where it is a record.

    Raises:
        PlanError: The options do not fit together.
    """
    from wpinq import users

    options = {
        "--at-most": at_most, "--per": per, "--shared": shared or None, "--period": period, "--at": at, "--zone": zone,
        "--bound-epsilon": chosen[0], "--bound-bins": chosen[1],
    }  # fmt: skip
    if column is None:
        if lone := [option for option, value in options.items() if value is not None]:
            raise PlanError(f"{lone[0]}: goes with --unit COLUMN, the column that names the person.")
        return None
    if at_most is not None and shared:
        raise PlanError(
            f"--unit {column}: give either --at-most N, how many records of each to keep, or --shared, so that those "
            "of each share a weight of 1."
        )
    if (period is None) != (at is None):
        raise PlanError("--period and --at go together: --period 1d --at time.")
    what, equals, number = (per or "").rpartition("=")
    if per is not None and not (what and equals and number.isdecimal()):
        raise PlanError("--per: write COLUMN=N, for example page=3.")
    if at_most not in (None, "auto") and not str(at_most).strip().isdecimal():
        raise PlanError(f"--at-most {at_most}: write a number of records, or auto.")
    if at_most == "auto" and chosen[0] is None:
        raise PlanError("--at-most auto: give --bound-epsilon too, what the choice costs, for example 0.1.")
    if at_most != "auto" and any(chosen):
        raise PlanError("--bound-epsilon, --bound-bins: go with --at-most auto.")
    bins, _, asking = (chosen[1] or "1").partition("@")
    if not bins.isdecimal():
        raise PlanError("--bound-bins: write BINS or BINS@EPSILON, for example 500@0.5.")
    length = int(period) if period is not None and period.isdecimal() else period
    return users(
        column,
        at_most=at_most if at_most in (None, "auto") else int(str(at_most)),
        per=None if per is None else (what, int(number)),
        shared=shared,
        period=length,
        at=at,
        zone=zone,
        epsilon=chosen[0],
        bins=int(bins),
        asking=asking or 1,
    )


def read_derived(texts: list[str] | None) -> dict[str, str]:
    """The columns to compute, by name.

    Raises:
        PlanError: One is not NAME=EXPRESSION, or has the name of another.
    """
    expressions: dict[str, str] = {}
    for text in texts or []:
        name, equals, expression = text.partition("=")
        if not (name.strip() and equals and expression.strip()) or name.strip() in expressions:
            raise PlanError("--derive: write NAME=EXPRESSION, each name once, for example page='lower(page)'.")
        expressions[name.strip()] = expression
    return expressions
