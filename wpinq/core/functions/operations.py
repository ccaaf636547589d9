"""The operations that work on each element alone: one table of what is known of each, by the names of Polars' trees.

An entry is `Name=method:mark:mark`. The method is how Polars is told to make it (`pl.` a function of all parts, `op.`
an operator); an operation without one is read in expressions that somebody made, and no more. The marks say:

- `columns`: its arguments may be columns, not constants alone;
- `chooses`: Polars may hold its value once for all records, where it chose a constant;
- `keeps`, `bears`, `makes`: of times that lie too far away for Polars (`admit.py`): one that it is given may
  be its value; it can be computed of one; its value may be one, of times that are none;
- a number: how many characters may come of one; `joins`: those of all parts; `pads`: as many as its last argument
  says; `replaces`: as many as its last argument is long;
- `adds`, `adds2`: how many nodes Polars adds as it makes it: its type, and what is done where a clock shows a time
  twice.
"""

from __future__ import annotations

from typing import NamedTuple

_TREE = "Column Literal Alias:keeps Ternary:keeps Cast:makes:adds"
_OPERATORS = """
    Eq=op.eq:bears NotEq=op.ne:bears EqValidity=eq_missing:bears NotEqValidity=ne_missing:bears Lt=op.lt:bears
    LtEq=op.le:bears Gt=op.gt:bears GtEq=op.ge:bears And=op.and_ Or=op.or_ Xor=op.xor LogicalAnd LogicalOr
    Plus=op.add:bears:makes:joins Minus=op.sub:bears:makes Multiply=op.mul TrueDivide=op.truediv Divide
    FloorDivide=op.floordiv Modulus=op.mod"""
FAMILIES = {
    "": """
    Abs=abs Negate=__neg__ Sign=sign Floor=floor Ceil=ceil Round=round RoundSF Truncate=truncate
    Clip=clip:columns:keeps Exp=exp Log=log:columns Log1p FillNull=fill_null:columns:chooses:keeps
    Coalesce=pl.coalesce:columns:chooses:keeps MinHorizontal=pl.min_horizontal:columns:keeps
    MaxHorizontal:columns:keeps SumHorizontal:columns:makes:joins MeanHorizontal:columns:makes Replace:chooses:keeps
    ReplaceStrict:chooses:bears""",
    "Boolean": """
    Not=__invert__ IsNull=is_null:bears IsNotNull=is_not_null:bears IsNan=is_nan IsNotNan=is_not_nan IsFinite=is_finite
    IsInfinite IsBetween=is_between:columns:bears IsIn=is_in:bears IsClose:columns AnyHorizontal:columns
    AllHorizontal=pl.all_horizontal:columns""",
    "StringExpr": """
    Lowercase=str.to_lowercase:3 Uppercase=str.to_uppercase:3 Titlecase:3 LenBytes=str.len_bytes LenChars=str.len_chars
    Contains=str.contains:columns ContainsAny StartsWith=str.starts_with:columns EndsWith=str.ends_with:columns
    Extract=str.extract ExtractAll Find CountMatches Replace=str.replace,str.replace_all:replaces ReplaceMany:replaces
    Slice=str.slice:columns Head=str.head:columns Tail=str.tail:columns StripChars=str.strip_chars
    StripCharsStart=str.strip_chars_start StripCharsEnd=str.strip_chars_end StripPrefix=str.strip_prefix:columns
    StripSuffix=str.strip_suffix:columns ZFill:pads PadStart:pads PadEnd:pads Reverse Normalize:18
    ConcatHorizontal=pl.concat_str:columns:joins Format:columns:joins Split=str.split HexEncode:2 Base64Encode:2
    HexDecode Base64Decode ToInteger Strptime=str.to_date,str.to_datetime:adds2 JsonPathMatch EscapeRegex:2""",
    "TemporalExpr": """
    Millennium=dt.millennium Century=dt.century Year=dt.year IsoYear=dt.iso_year IsLeapYear Quarter=dt.quarter
    Month=dt.month DaysInMonth Week=dt.week WeekDay=dt.weekday Day=dt.day OrdinalDay=dt.ordinal_day Hour=dt.hour
    Minute=dt.minute Second=dt.second Millisecond Microsecond=dt.microsecond Nanosecond Date=dt.date Datetime MonthStart
    MonthEnd TimeStamp=dt.timestamp TotalDays TotalHours TotalMinutes TotalSeconds TotalMilliseconds TotalMicroseconds
    ToString=dt.strftime ConvertTimeZone=dt.convert_time_zone ReplaceTimeZone=dt.replace_time_zone:adds
    Truncate=dt.truncate Round OffsetBy=dt.offset_by:makes""",
    "BinaryExpr": "Size Contains:columns StartsWith:columns EndsWith:columns",
    "ListExpr": "Get=list.get Length=list.len",
    "Pow": "Generic=pow:columns Sqrt=sqrt Cbrt=cbrt",
    "Trigonometry": """
    Sin=sin Cos=cos Tan=tan Cot=cot ArcSin=arcsin ArcCos=arccos ArcTan=arctan Sinh=sinh Cosh=cosh Tanh=tanh
    ArcSinh=arcsinh ArcCosh=arccosh ArcTanh=arctanh Degrees=degrees Radians=radians""",
    "Bitwise": "CountOnes CountZeros LeadingOnes LeadingZeros TrailingOnes TrailingZeros",
}


class Operation(NamedTuple):
    """What is known of an operation; see above.

    Attributes:
        methods: How Polars is told to make it.
        marks: What its entry says of it.
    """

    methods: tuple[str, ...]
    marks: frozenset[str]

    @property
    def factor(self) -> int:
        """How many characters may come of one."""
        return next((int(mark) for mark in self.marks if mark.isdigit()), 1)

    @property
    def added(self) -> int:
        """How many nodes Polars adds to it."""
        return 2 * ("adds2" in self.marks) + ("adds" in self.marks)


def _read(entries: str, family: str = "") -> dict[str, Operation]:
    result = {}
    for entry in entries.split():
        (name, _, methods), *marks = entry.split(":")[0].partition("="), *entry.split(":")[1:]
        made = tuple(methods.split(",")) if methods else ()
        result[f"{family}.{name}" if family else name] = Operation(made, frozenset(marks))
    return result


OPERATORS = _read(_OPERATORS)
FUNCTIONS = {
    name: operation for family, entries in FAMILIES.items() for name, operation in _read(entries, family).items()
}
TABLE = {**_read(_TREE), **OPERATORS, **FUNCTIONS}
METHODS = {method: name for name, operation in TABLE.items() for method in operation.methods} | {
    "to_physical": "ToPhysical"
}
"""What nodes are made with; `to_physical` also, which nobody may write who does not know how columns store."""
