"""The transformations of wPINQ and PINQ, one in each file: method, stability, definition and columnar kernel.

Adding one is a new file here, a line in `methods.py`, `collection.py` and `README.md`, and a line in each of three
tests that try every operator; `docs/contributing.md` says how. Everything else (engines, costs, `explain`) follows
from the file.

`methods.py` lists those that are methods of collections. Others: `contribution/` (contribution bounding and weights of
a source), and `align`, `dither`, `keys`, `pairs` and `parallel`, which several operators use.
"""
