"""Texts or bytes where they lie in memory: a column of Polars by Arrow's C interface, for which no library is loaded.

Source: the Arrow C data interface and the Arrow C stream interface, https://arrow.apache.org/docs/format/CDataInterface.html
and https://arrow.apache.org/docs/format/CStreamInterface.html. A text lies as a view of 16 bytes, and if it is longer
than 12, in one of several buffers.
"""

from __future__ import annotations

import ctypes
from typing import Any

_P, _N = ctypes.c_void_p, ctypes.c_int64
VIEW = 16
"""Bytes of a view."""


class _Array(ctypes.Structure):
    """`struct ArrowArray`."""

    _fields_ = (
        *((name, _N) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
        ("buffers", ctypes.POINTER(_P)),
        ("children", _P),
        ("dictionary", _P),
        ("release", ctypes.CFUNCTYPE(None, _P)),
        ("private_data", _P),
    )


class _Stream(ctypes.Structure):
    """`struct ArrowArrayStream`."""

    _fields_ = (
        ("get_schema", _P),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, _P, _P)),
        ("get_last_error", _P),
        ("release", _P),
        ("private_data", _P),
    )


_pointer = ctypes.PYFUNCTYPE(_P, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


class Views:
    """The views of a column in one piece, which is kept for as long as this is.

    Args:
        column: A Polars column of texts or bytes in one chunk.

    Attributes:
        size: How many there are.
        start: The address of the first.
        buffers: The address of the addresses of the buffers.
    """

    def __init__(self, column: Any) -> None:
        capsule = column.__arrow_c_stream__()  # lets go of the stream
        stream, self._array = _Stream.from_address(_pointer(capsule, b"arrow_array_stream")), _Array()
        if stream.get_next(ctypes.addressof(stream), ctypes.addressof(self._array)):
            raise MemoryError
        self.size: int = self._array.length
        self.start: int = 0
        self.buffers: int = 0
        if self.size:  # else there may be no array
            self.start = self._array.buffers[1] + VIEW * self._array.offset
            self.buffers = ctypes.addressof(self._array.buffers.contents) + 2 * ctypes.sizeof(_P)

    def __del__(self) -> None:
        if self._array.release:
            self._array.release(ctypes.addressof(self._array))
