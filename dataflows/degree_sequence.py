"""How often was the r-th most viewed page viewed? The frequency sequence of *Things that count*.

It is the CDF turned on its side, so shave a second time: the bin of k weighs as much as there are pages with at least
k views; cut into slices, its r-th slice is there if at least r pages have k views. Forgetting k leaves the rank r,
with one record for every k that the r-th most viewed page reaches. `shave` is stable, twice as well as once.

    wpinq run degree_sequence views.csv --budget 0.05 --observe degree_sequence=1..100
"""

from __future__ import annotations

from wpinq import Collection, Measurement

EPSILON = "0.05"


def dataflow(views: Collection) -> dict[str, Measurement]:
    """Give the views of the page of each rank, with noise of scale 20."""
    pages = views.map(lambda page: page)
    counts = pages.shave().map(lambda page, index: index)
    ranks = counts.shave(name="rank").map(lambda index, rank: rank)
    return {"degree_sequence": ranks.measure(epsilon=EPSILON, name="degree_sequence")}
