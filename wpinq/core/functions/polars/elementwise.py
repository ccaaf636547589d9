"""Names of the Polars operators and functions that work on each element alone, as their serialised trees call them."""

from __future__ import annotations

OPERATORS = frozenset(
    [
        *("Eq", "NotEq", "EqValidity", "NotEqValidity", "Lt", "LtEq", "Gt", "GtEq", "And", "Or", "Xor"),
        *("LogicalAnd", "LogicalOr", "Plus", "Minus", "Multiply", "TrueDivide", "FloorDivide", "Modulus", "Divide"),
    ]
)
FAMILIES = frozenset(
    ["Boolean", "StringExpr", "TemporalExpr", "BinaryExpr", "ListExpr", "Pow", "Trigonometry", "Bitwise"]
)
_PLAIN = """
    Abs Negate Sign Floor Ceil Round RoundSF Truncate Clip Exp Log Log1p FillNull Coalesce MinHorizontal MaxHorizontal
    SumHorizontal MeanHorizontal Replace ReplaceStrict"""
_BOOLEAN = """
    Not IsNull IsNotNull IsNan IsNotNan IsFinite IsInfinite IsBetween IsIn IsClose AnyHorizontal AllHorizontal"""
_STRING = """
    Lowercase Uppercase Titlecase LenBytes LenChars Contains ContainsAny StartsWith EndsWith Extract ExtractAll Find
    CountMatches Replace ReplaceMany Slice Head Tail StripChars StripCharsStart StripCharsEnd StripPrefix StripSuffix
    ZFill PadStart PadEnd Reverse Normalize ConcatHorizontal Format Split HexEncode Base64Encode HexDecode Base64Decode
    ToInteger Strptime JsonPathMatch EscapeRegex"""
_TEMPORAL = """
    Millennium Century Year IsoYear IsLeapYear Quarter Month DaysInMonth Week WeekDay Day OrdinalDay Hour Minute Second
    Millisecond Microsecond Nanosecond Date Datetime MonthStart MonthEnd TimeStamp TotalDays TotalHours TotalMinutes
    TotalSeconds TotalMilliseconds TotalMicroseconds ToString ConvertTimeZone ReplaceTimeZone Truncate Round OffsetBy"""
_TRIGONOMETRY = "Sin Cos Tan Cot ArcSin ArcCos ArcTan Sinh Cosh Tanh ArcSinh ArcCosh ArcTanh Degrees Radians"


def _family(name: str, members: str) -> frozenset[str]:
    return frozenset(f"{name}.{member}" for member in members.split())


FUNCTIONS = frozenset().union(
    _PLAIN.split(),
    _family("Boolean", _BOOLEAN),
    _family("StringExpr", _STRING),
    _family("TemporalExpr", _TEMPORAL),
    _family("Trigonometry", _TRIGONOMETRY),
    _family("Pow", "Generic Sqrt Cbrt"),
    _family("BinaryExpr", "Size Contains StartsWith EndsWith"),
    _family("ListExpr", "Get Length"),
    _family("Bitwise", "CountOnes CountZeros LeadingOnes LeadingZeros TrailingOnes TrailingZeros"),
)
TAKES_COLUMNS = frozenset(
    [
        *("Clip", "Log", "FillNull", "Coalesce", "MinHorizontal", "MaxHorizontal", "SumHorizontal", "MeanHorizontal"),
        *("Boolean.IsBetween", "Boolean.IsClose", "Boolean.AnyHorizontal", "Boolean.AllHorizontal", "Pow.Generic"),
        *("StringExpr.ConcatHorizontal", "StringExpr.Format", "StringExpr.StartsWith", "StringExpr.EndsWith"),
        *("StringExpr.Contains", "StringExpr.Slice", "StringExpr.Head", "StringExpr.Tail", "BinaryExpr.StartsWith"),
        *("StringExpr.StripPrefix", "StringExpr.StripSuffix", "BinaryExpr.EndsWith", "BinaryExpr.Contains"),
    ]
)
