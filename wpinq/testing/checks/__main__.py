"""One check in a process of its own: `python -m wpinq.testing.checks NAME EFFORT`."""

from __future__ import annotations

import sys

from wpinq.testing.checks.run import answer

if __name__ == "__main__":
    sys.stdout.write("\n" + answer(sys.argv[1:]) + "\n")
