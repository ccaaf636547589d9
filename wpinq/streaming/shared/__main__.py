"""`python -m wpinq.streaming.shared`: a worker of a shared stream, which `crew.py` starts."""

import sys

from wpinq.streaming.shared.worker import main

if __name__ == "__main__":
    sys.exit(main())
