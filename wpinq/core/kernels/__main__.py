"""`python -m wpinq.core.kernels`: compile the kernels of a checkout."""

import sys

from wpinq.core.kernels.build import compile_kernels

sys.exit("wpinq.core.kernels: there is no C compiler that can compile it." if compile_kernels() is None else 0)
