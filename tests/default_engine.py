"""The engine that runs plans over more than a little: bytewax's where it is, else the plain loop (Python 3.13, 3.14).

`flow` is its module, for tests that watch, cut or forbid runs, or compare with them.
"""

from wpinq.core.engines import installed, local

if installed():
    from wpinq.core.engines.bytewax import flow
else:
    flow = local
