"""`wpinq graph`: what it writes, what it charges, and what it refuses before it charges anything."""

import json

import networkx as nx
import polars as pl
import pytest

EDGES = nx.powerlaw_cluster_graph(80, 4, 0.8, seed=1).edges


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("from,to\n" + "".join(f"n{a},n{b}\n" for a, b in EDGES))
    return path


def test_all_outputs(wpinq, edges, tmp_path):
    made, plot, out = (tmp_path / name for name in ("made.parquet", "out.png", "out.json"))
    written = ["--synthesize", made, "--plot", plot, "--json", out]
    done = wpinq("graph", edges, "--budget", "5000", "--steps", "20000", "--ledger", tmp_path / "ledger", *written)
    assert (done.code, done.err) == (0, "")
    table = pl.read_parquet(made)
    assert table.columns == ["from", "to"]
    assert len(table) == len(EDGES)
    assert plot.read_bytes().startswith(b"\x89PNG")
    found = json.loads(out.read_text())
    assert found["cost"] == {"epsilon": 5000, "delta": 0}
    assert found["graphs"]["fitted"]["triangles"] > found["graphs"]["seed"]["triangles"]
    assert "n1" not in out.read_text().replace("version", "")
    assert "Epsilon 0 of 5000 is left" in done.out
    assert "protects one record" in done.out.lower() or "one record" in done.out


def test_what_can_never_run_is_refused_before_a_ledger_is_made(wpinq, edges, tmp_path):
    ledger, wide = tmp_path / "ledger", tmp_path / "wide.csv"
    wide.write_text("a,b,c\n1,2,3\n")
    for place, *options in (
        (wide, "--budget", "1"),
        (edges, "--budget", "0"),
        (edges, "--budget", "0.0001"),
        (edges, "--budget", "1", "--synthesize", tmp_path / "made.xlsx"),
    ):
        assert wpinq("graph", place, *options, "--ledger", ledger).refused()
        assert not ledger.exists()


def test_nodes_are_protected_with_the_edges_that_both_ends_list(wpinq, tmp_path):
    both = tmp_path / "both.csv"
    both.write_text("from,to\n" + "".join(f"n{a},n{b}\nn{b},n{a}\n" for a, b in EDGES))
    unit = ["--unit", "from", "--at-most", "5", "--mutual"]
    done = wpinq("graph", both, *unit, "--budget", "50", "--steps", "100", "--ledger", tmp_path / "ledger")
    assert done.code == 0
    assert "from" in done.out


def test_bipartite_pairs(wpinq, tmp_path):
    pairs, ledger = tmp_path / "pairs.csv", tmp_path / "ledger"
    chosen = [(user, 4 * (user % 3) + item) for user in range(60) for item in range(4) if (user + item) % 4]
    pairs.write_text("user,item\n" + "".join(f"u{user},i{item}\n" for user, item in chosen))
    assert wpinq("graph", pairs, "--bipartite", "--mutual", "--budget", "1", "--ledger", ledger).refused()
    made, out, plot = (tmp_path / name for name in ("made.parquet", "out.json", "out.png"))
    written = ["--synthesize", made, "--json", out, "--plot", plot, "--steps", "20000", "--ledger", ledger]
    done = wpinq("graph", pairs, "--bipartite", "--budget", "5000", *written)
    assert (done.code, done.err) == (0, "")
    table, found = pl.read_parquet(made), json.loads(out.read_text())
    assert table.columns == ["user", "item"] and len(table) == len(chosen)
    assert found["graphs"]["fitted"]["butterflies"] > 2 * found["graphs"]["random"]["butterflies"] > 0
    assert set(found["noisy"]) == {"joint", "butterflies"} and set(found["degrees"]) == {"left", "right"}
    assert "u1" not in out.read_text().replace("version", "") and "butterflies" in done.out
