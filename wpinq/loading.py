"""How heavy libraries are loaded: without the garbage collector."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading(name: str) -> Iterator[None]:
    """Pause the collector while a module is loaded for the first time, and give what it made to the oldest generation.

    Nothing of a module is garbage, but the collector would look through all of them again and again, for a twentieth of
    the time of a short run. Freezing and thawing moves objects without a look at them; it frees none and keeps none.
    """
    pausing = name not in sys.modules and gc.isenabled()
    if pausing:
        gc.disable()
    try:
        yield
    finally:
        if pausing:
            if not gc.get_freeze_count():  # else somebody else froze what is to stay so
                gc.freeze()
                gc.unfreeze()
            gc.enable()
