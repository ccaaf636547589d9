"""wPINQ's experiment, retold: released numbers tell a graph with triangles from one that has its degrees alone.

The graph is made up: 300 groups of eight people who all know each other, with one in ten friendships moved elsewhere.
The other one has the same degrees, and its edges at random. Each is asked for triangles by intersect (TbI) at epsilon
0.1, as in the paper; then a synthetic graph is made of each at epsilon 1, and it has the triangles that its own has.

    python -m examples.triangles

Source: Proserpio, Goldberg, McSherry, Calibrating data to sensitivity in private data analysis, PVLDB 7(8), 2014.
"""

from __future__ import annotations

import networkx as nx

import wpinq


def graphs() -> dict[str, list[tuple[int, int]]]:
    """The edges of both."""
    real = nx.relaxed_caveman_graph(300, 8, 0.1, seed=1)
    rewired = real.copy()
    nx.double_edge_swap(rewired, nswap=3 * real.number_of_edges(), max_tries=10**6, seed=2)
    return {"real": list(real.edges), "rewired": list(rewired.edges)}


def tell(edges: list[tuple[int, int]]) -> tuple[float, float, int, int]:
    """TbI at epsilon 0.1 and the scale of its noise; the triangles of a synthetic graph, and the true ones."""
    listed = wpinq.protect(edges, budget="1.1", columns={"one": int, "other": int}, version="1")
    both = wpinq.graphs.undirected(listed)
    signal = wpinq.graphs.triangles_by_intersect(both).measure(epsilon="0.1")
    fit = wpinq.graphs.fit(wpinq.graphs.measure(listed, epsilon=1), seed=1, steps=2_000_000)
    true = sum(nx.triangles(nx.Graph(edges)).values()) // 3
    return float(signal.observe("triangles")), float(signal.scale), fit.graph.summary().triangles, true


def main() -> None:
    """Ask both, and tell what follows."""
    for name, edges in graphs().items():
        signal, scale, made, true = tell(edges)
        print(
            f"{name:>8}: TbI {signal:,.0f} at a noise of scale {scale:.0f}; synthetic {made:,} triangles, true {true:,}"
        )


if __name__ == "__main__":
    main()
