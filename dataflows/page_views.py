"""How often was each page viewed? The first question of *Things that count*.

A record is a row of the input, such as `(user, page)`. `map` keeps its page, so all views of one page become one bin
that weighs as much as there are views. One view more or less changes one bin by one: the noise has scale 1 / EPSILON.

    wpinq run page_views views.csv --budget 0.05 --observe "page_views=Page 1,Page 2"
"""

from __future__ import annotations

from wpinq import Collection, Measurement

EPSILON = "0.05"  # what it costs whoever is behind one view


def dataflow(views: Collection) -> dict[str, Measurement]:
    """Count the views of each page, with noise of scale 20."""
    pages = views.map(lambda page: page)
    return {"page_views": pages.measure(epsilon=EPSILON, name="page_views")}
