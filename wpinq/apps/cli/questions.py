"""Questions at the prompt of `wpinq shell`: a closed grammar of the public operators, and SQL. No Python is run.

A line is read as a syntax tree of Python, of which a chain of calls with plain arguments is taken and all else refused.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from wpinq.apps.cli.bins import parse_bins
from wpinq.errors import PlanError

if TYPE_CHECKING:
    from wpinq import Answer, Measurement
    from wpinq.apps.remote.wire import Priced
    from wpinq.collection import Collection
    from wpinq.query import Quoted

RECORDS = "views"
"""What questions call the records, as scripts do."""
OPERATORS = (
    "map", "filter", "shave", "distinct", "group_by", "limit", "concat", "subtract", "union", "intersect", "join",
    "join_rows", "semijoin", "antijoin",
)  # fmt: skip
COSTS = ("epsilon", "within", "rho", "mechanism", "delta")
OPTION = re.compile(rf"\s+({'|'.join((*COSTS, 'bounds', 'keys'))})\s+(\"[^\"]*\"|'[^']*'|\S+)\s*\Z", re.IGNORECASE)
MEASURE = re.compile(r"measure\s+([A-Za-z_]\w*)\s*=(?!=)\s*(.+)", re.DOTALL)
EXAMPLE = f"measure pages = {RECORDS}.map(page).shave() epsilon 0.1"


@dataclass(frozen=True)
class Question:
    """A question that was priced and not charged.

    Attributes:
        price: What it costs, and the noise to expect.
        charge: Charges what was priced, once, and gives its answer, or a measurement to observe.
        name: What the measurement is called; nothing of a query.
    """

    price: Priced
    charge: Callable[[], Measurement | Answer]
    name: str = ""


def asks(line: str) -> bool:
    """Whether a line asks something new.

    >>> asks("select count(*) from views epsilon 1"), asks("pages home")
    (True, False)
    """
    return line.split(None, 1)[:1] == ["measure"] or line[:7].upper().split() in (["SELECT"], ["WITH"])


def read(line: str, records: Collection) -> Question:
    """Read a question and price it; nothing is charged, and no record is read.

    Args:
        line: `measure NAME = views...`, or a SELECT, with `epsilon` and other options at its end.
        records: What `views` is.

    Raises:
        WpinqError: It cannot be read or asked.
    """
    text, options = _options(line.strip())
    if not any(name in options for name in ("epsilon", "within", "rho")):
        raise PlanError(f"what may it cost? End it with epsilon 0.1, or within 50: {EXAMPLE}")
    if text.startswith("measure"):
        return _measured(text, options, records)
    return _selected(text, options, records)


def _options(text: str) -> tuple[str, dict[str, list[str]]]:
    """What stands before the options at the end of a line, and these."""
    options: dict[str, list[str]] = {}
    while match := OPTION.search(text):
        word, value = match[1].lower(), match[2]
        options.setdefault(word, []).insert(0, value[1:-1] if value[0] in "\"'" else value)
        text = text[: match.start()]
    if twice := [word for word, values in options.items() if len(values) > 1 and word != "bounds"]:
        raise PlanError(f"{twice[0]} is given twice.")
    return text, options


def _measured(text: str, options: dict[str, list[str]], records: Collection) -> Question:
    from wpinq.aggregates.expected_noise import expected_noise
    from wpinq.apps.remote.pricing import priced

    match = MEASURE.fullmatch(text)
    if match is None:
        raise PlanError(f"measure: write {EXAMPLE}")
    if odd := [word for word in ("bounds", "keys") if word in options]:
        raise PlanError(f"measure: {odd[0]} goes with SELECT.")
    wanted = collection(match[2], records)
    quote = wanted.quote(**{word: values[0] for word, values in options.items()})  # type: ignore[arg-type]
    return Question(
        priced([quote], None, [expected_noise(quote, "weight")]), lambda: wanted.measure(quote=quote), match[1]
    )


def _selected(text: str, options: dict[str, list[str]], records: Collection) -> Question:
    from wpinq.apps.cli.bins import parse_bounds
    from wpinq.apps.cli.options import by_name
    from wpinq.apps.remote.pricing import priced_sql
    from wpinq.query import WrittenKeys, quoted

    tables = {RECORDS: records}
    bounds = by_name("bounds", map(parse_bounds, options.pop("bounds", ())))
    keys = options.pop("keys", None)
    groups = None if keys is None else WrittenKeys(partial(parse_bins, keys[0]))
    costs: dict[str, Any] = {word: values[0] for word, values in options.items()}
    quote: Quoted = quoted(text, tables, keys=groups, bounds=bounds, **costs)
    return Question(priced_sql(quote, None), quote.charge)


def collection(text: str, records: Collection) -> Collection:
    """The collection that a chain of operators describes, such as `views.filter("size > 3").map(page).shave()`.

    Raises:
        PlanError: It is anything else, or an operator refuses it.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise PlanError(f"this cannot be read: {text.strip()[:60]!r}; write for example {EXAMPLE}") from None
    try:
        made = _value(tree, records)
    except RecursionError:
        raise PlanError("this plan is too deep.") from None
    if not hasattr(made, "_node"):
        raise PlanError(f"a plan begins with {RECORDS}; write for example {EXAMPLE}")
    result: Collection = made
    return result


def _value(node: ast.expr, records: Collection) -> Any:
    """What a part of a plan stands for: a collection, the name of a column, or a plain value."""
    match node:
        case ast.Call(func=ast.Attribute(value=of, attr=name)) if name in OPERATORS:
            return _applied(name, _value(of, records), node, records)
        case ast.Call(func=ast.Attribute(attr=name)) | ast.Call(func=ast.Name(id=name)):
            raise PlanError(f"{name}: is no operator here; there are {', '.join(OPERATORS)}. Others are for scripts.")
        case ast.Name(id="len"):
            return len
        case ast.Name(id=name):
            return records if name == RECORDS else name
        case ast.Constant(value=bool() | int() | float() | str() | None):
            return node.value
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [_value(part, records) for part in parts]
        case ast.BinOp(left=ast.Constant(value=int() as over), op=ast.Div(), right=ast.Constant(value=int() as under)):
            return Fraction(over, under or 1)
    raise PlanError('an argument is a column, a number, or an expression in quotes, as SQL: filter("size > 3").')


def _applied(name: str, of: Any, call: ast.Call, records: Collection) -> Any:
    """An operator, applied to plain arguments."""
    if not hasattr(of, "_node"):
        raise PlanError(f"{name}: a plan begins with {RECORDS}; write for example {EXAMPLE}")
    arguments: Sequence[Any] = [_value(argument, records) for argument in call.args]
    words = {word.arg or "**": _value(word.value, records) for word in call.keywords}
    if name == "map" and len(arguments) > 1 and all(isinstance(argument, str) for argument in arguments):
        arguments = [", ".join(arguments)]
    operator = getattr(of, name)
    try:
        inspect.signature(operator).bind(*arguments, **words)
    except TypeError as error:
        raise PlanError(f"{name}: {error}.") from None
    return operator(*arguments, **words)
