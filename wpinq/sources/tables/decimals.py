"""Decimals of Arrow as numbers: whole numbers where the type has no places, else the nearest doubles.

A double that is nearest to a decimal of at most 15 digits is that of no other one, and prints as the decimal: 0.07 is
what a query writes as 0.07. Arrow's own cast multiplies by a rounded power of ten, and gives the double beside the
nearest one for an eighth of all prices. Longer decimals may share a double; read them as text to keep all digits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from wpinq.core.records.schema import Kind, polars_type

if TYPE_CHECKING:
    import pyarrow as pa

WHOLE = 18
"""Digits that 64 bits hold."""
PLACES = 22
"""Powers of ten up to this are doubles."""
EXACT = 1 << 53
"""Whole numbers up to this are doubles, so that one division rounds once."""


def kind_of(type_: pa.DataType) -> Kind:
    """The kind of a decimal type."""
    return Kind.INT if type_.scale == 0 and type_.precision <= WHOLE else Kind.FLOAT


def numbers(array: pa.Array) -> pl.Series:
    """An array of decimals of 128 or 256 bits as a column of its kind."""
    type_ = array.type
    native = kind_of(type_)
    if type_.bit_width != 128 or not 0 <= type_.scale <= PLACES:
        read = int if native is Kind.INT else float
        return pl.Series(
            [None if number is None else read(number) for number in array.to_pylist()], dtype=polars_type(native)
        )
    low, high = _words(array)
    held = pl.Series(array.is_valid().to_numpy(zero_copy_only=False))
    if native is Kind.INT:
        return pl.Series(low).set(~held, None)
    quotients = low / 10.0**type_.scale
    far = np.flatnonzero(held.to_numpy() & ((high != low >> 63) | (np.abs(low) > EXACT)))
    if len(far):
        quotients[far] = [float(array[index].as_py()) for index in far.tolist()]
    return pl.Series(quotients).set(~held, None)


def _words(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The low and the high word of each number of 128 bits; of what is null, anything."""
    if not len(array):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    words = np.frombuffer(array.buffers()[1], "<i8").reshape(-1, 2)[array.offset : array.offset + len(array)]
    return words[:, 0], words[:, 1]
