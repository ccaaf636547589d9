"""How many pages were viewed at least k times? The cumulative degree distribution (CDF) of *Things that count*.

`shave` cuts each page's weight into slices of one view, numbered from 1: a page with three views becomes `(page, 1)`,
`(page, 2)` and `(page, 3)`. Forgetting the page leaves the number k, and every page with at least k views put one
record there. One view more or less adds or removes one slice, so the answer moves by one and not by its rank: that
is why this noise is small, though each view helps to shape a thousand bins.

    wpinq run degree_cdf views.csv --budget 0.1 --observe degree_cdf=1..1000
"""

from __future__ import annotations

from wpinq import Collection, Measurement

EPSILON = "0.1"


def dataflow(views: Collection) -> dict[str, Measurement]:
    """Count the pages with at least k views, for every k, with noise of scale 10."""
    pages = views.map(lambda page: page)
    slices = pages.shave()  # (page, index): the first view of each page, the second, ...
    return {"degree_cdf": slices.map(lambda page, index: index).measure(epsilon=EPSILON, name="degree_cdf")}
