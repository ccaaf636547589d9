"""All three questions of *Things that count* about one collection of views, read once.

The CDF is precise where many pages have few views, the sequence where few pages have many. Each is one side of one
staircase, and `wpinq degrees` finds the staircase that fits both (`wpinq.postprocess.degrees.reconcile` does it in a
script). Costs add up: 0.05 + 0.1 + 0.05 fills a budget of 0.2 to the last drop. `wpinq.degrees.cdf` and
`wpinq.degrees.sequence` are the pipelines of the two other scripts, under a name.

    wpinq explain degrees
    wpinq shell degrees views.csv --budget 0.2
"""

from __future__ import annotations

import wpinq
from wpinq import Collection, Measurement

PAGE_VIEWS = "0.05"
DEGREE_CDF = "0.1"
DEGREE_SEQUENCE = "0.05"


def dataflow(views: Collection) -> dict[str, Measurement]:
    """Measure page views, their cumulative distribution and their sequence."""
    pages = views.map(lambda page: page)
    return {
        "page_views": pages.measure(epsilon=PAGE_VIEWS, name="page_views"),
        "degree_cdf": wpinq.degrees.cdf(pages).measure(epsilon=DEGREE_CDF, name="degree_cdf"),
        "degree_sequence": wpinq.degrees.sequence(pages).measure(epsilon=DEGREE_SEQUENCE, name="degree_sequence"),
    }
