"""Eighteen women and fourteen social events in the American South of the 1930s: the smallest graph there is.

python -m examples.davis_women OUT

networkx brings the graph of Davis, Gardner and Gardner (1941). It is public, so the truth may stand beside the noise,
and it shows where differential privacy ends: with 89 attendances, noise that hides one of them hides much of the rest.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import networkx as nx
import numpy as np

import wpinq

BUDGET = 2


def main(out: Path) -> None:
    """Measure the graph with a large budget, and say what is left to see."""
    graph = nx.davis_southern_women_graph()
    women, events = graph.graph["top"], graph.graph["bottom"]
    attendances = [(woman, event) for woman in women for event in graph[woman]]
    truth = np.sort([graph.degree[event] for event in events])[::-1]

    protected = wpinq.protect(attendances, budget=BUDGET, columns={"woman": str, "event": str})
    attended = protected.map(lambda event: event)
    events_measured = attended.measure(epsilon="1/2")
    cdf = wpinq.degrees.cdf(attended).measure(epsilon="3/4")
    sequence = wpinq.degrees.sequence(attended).measure(epsilon="3/4")

    print(f"\n{len(women)} women, {len(events)} events, {len(attendances)} attendances. One attendance is protected by")
    print(f"epsilon {BUDGET} in all, ten times what the page views of the other example cost, and still:\n")
    print("   event   noisy   truth")
    for event in events:
        print(f"   {event:<7}{events_measured.observe(event):>6}{graph.degree[event]:>8}")
    half = events_measured.interval(0.9)
    print(f"\nThe noise has scale {events_measured.scale}: nine in ten answers are within {half:g} of the truth,")
    print(f"and the truths themselves lie between {truth.min()} and {truth.max()}. Do not rank the events by this.")

    fit = wpinq.degrees.reconcile(cdf, sequence)
    low, high = fit.band(0.9)
    print("\nEvents with at least k women, fitted to a cdf and a sequence (3/4 each):\n")
    print("       k   noisy     fit    90% band   truth")
    for k in (1, 2, 4, 6, 8, 10, 12, 14):
        noisy, fitted = (int(curve[k - 1]) if k <= len(curve) else 0 for curve in (fit.noisy_cdf, fit.cdf))
        band = f"{low[k - 1]} to {high[k - 1]}" if k <= len(low) else "0 to 0"
        print(f"   {k:>5}{noisy:>8}{fitted:>8}{band:>12}{(truth >= k).sum():>8}")
    print(f"\nThe fit speaks of {fit.distinct} events and {fit.records} attendances. It is closer, for it knows that a")
    print("staircase only falls; but on a graph this small a step more or less is noise as often as not.")

    out.mkdir(parents=True, exist_ok=True)
    fit.plot(out / "davis_women.png", truth=[(truth >= k).sum() for k in range(1, truth.max() + 1)])
    print(f"The picture is {out / 'davis_women.png'}. The ledger was in memory: run it again, and all is drawn anew.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT", help="directory for the picture")
    main(parser.parse_args().out)
