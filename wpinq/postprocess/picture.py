"""A figure that a notebook shows, and that is written whole or not at all; without pyplot, so without global state."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

from wpinq.errors import needs
from wpinq.postprocess.style import SUFFIXES
from wpinq.storage import replacing

try:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
except ImportError:
    needs("plot", "drawing")
    raise


class Picture(Figure):
    """A figure of matplotlib."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        FigureCanvasAgg(self)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write it to a `.png`, `.svg` or `.pdf` file.

        Raises:
            SourceError: The suffix is unknown, or the path cannot be written.
        """
        with replacing("plot", Path(path), SUFFIXES) as file:
            self.savefig(file, format=Path(path).suffix[1:].lower(), dpi=150)

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=100)
        return file.getvalue()
