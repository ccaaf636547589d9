"""The chain of bipartite graphs against its plain Python, the queries that it looks to answer, and its own law."""

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations

import networkx as nx
import numpy as np
import pair_swaps
import pytest
from depth import thin
from edge_swaps import off
from strategies import expected, protected

from wpinq import graphs
from wpinq.core import kernels
from wpinq.errors import PlanError
from wpinq.postprocess.graphs import bipartite
from wpinq.postprocess.graphs.bipartite import BipartiteChain
from wpinq.postprocess.graphs.counts import buckets_of
from wpinq.postprocess.graphs.pair_counts import LARGEST, MOST, UNIT, PairGraph, cuts, shared_in_all, sliced
from wpinq.postprocess.graphs.synthetic import pairs_with_degrees
from wpinq.postprocess.graphs.target import Target

pytestmark = pytest.mark.skipif(kernels.LIB is None, reason="there are no compiled kernels")


def random_pairs(seed, lefts=30, rights=12, many=90):
    rng = np.random.default_rng(seed)
    popular = 1 / np.arange(1, rights + 1)
    drawn = rng.choice(rights, many, p=popular / popular.sum())
    return PairGraph.of(np.stack([rng.integers(lefts, size=many), drawn], 1))


def walker(seed, **how):
    graph = random_pairs(seed, **how)
    left, right = (buckets_of(some) for some in graph.degrees)
    return BipartiteChain(graph, np.random.default_rng(seed), (left, right))


def target(one, scale=0.5, slack=0.0):
    counts = one.counts()
    wanted = counts * np.random.default_rng(1).uniform(0.5, 3, len(counts))
    return Target(wanted, np.full(len(counts), scale), np.full(len(counts), slack), one.sides[0] * one.sides[1])


def recounted(one):
    """Another walker that begins where this one is."""
    return BipartiteChain(one.now, one.rng, one.sides)


@pytest.mark.parametrize("seed", [1, 2])
def test_butterflies_and_degrees_are_those_of_networkx(seed):
    graph = random_pairs(seed)
    made = nx.Graph([(f"l{a}", f"r{b}") for a, b in graph.pairs])
    rights = [f"r{b}" for b in range(graph.rights)]
    common = [len(set(made[a]) & set(made[b])) for a, b in combinations(rights, 2)]
    assert graph.butterflies() == sum(c * (c - 1) // 2 for c in common) > 0
    assert graph.degrees[1].tolist() == [made.degree[node] for node in rights]
    squares = nx.square_clustering(made)
    summary = graphs.SyntheticPairs.like(graph).summary()
    assert (summary.clustering > 0) == any(squares.values())


@pytest.mark.parametrize("seed", range(4))
def test_compiled_as_in_python(seed, monkeypatch):
    found = []
    for library, loop in ((kernels.LIB, bipartite.wander), (None, pair_swaps.wander)):
        monkeypatch.setattr(kernels, "LIB", library)
        monkeypatch.setattr(bipartite, "wander", loop)
        one = walker(seed)
        made = one.walk(target(one, 5.0 * seed, slack=0.5 * (seed % 2)), 1500)
        states = one._other.tobytes(), one._sliced.tobytes(), one._total.tobytes(), one.counts().tobytes()
        found.append((made, *states, one.rng.random()))
    assert found[0] == found[1]
    assert made > 20


def test_what_is_kept_is_what_a_recount_gives_and_degrees_stay():
    one = walker(5, lefts=200, rights=60, many=900)
    before = one.graph
    assert one.walk(target(one), 40_000) > 1000
    again = recounted(one)
    assert again._sliced.tolist() == one._sliced.tolist()
    assert again._total.tolist() == one._total.tolist()
    assert dict(zip(*one._pairs(), strict=True)) == dict(zip(*again._pairs(), strict=True))
    assert [some.tolist() for some in one.now.degrees] == [some.tolist() for some in before.degrees]
    assert len({tuple(pair) for pair in one.now.pairs.tolist()}) == len(before.pairs)
    assert one.now.pairs.tolist() != before.pairs.tolist()


def test_a_full_table_is_made_anew():
    one = walker(6, lefts=300, rights=250, many=900)
    size = len(one._table[0])
    one._fill(*one._pairs())
    used = [int(one._table[2][0])]
    for _ in range(40):
        one.walk(target(one).times(0), 2_000)
        used.append(int(one._table[2][0]))
    assert len(one._table[0]) == size and max(used) <= size // 2
    assert min(np.diff(used)) < 0, "it was made anew"
    assert recounted(one)._sliced.tolist() == one._sliced.tolist()


def test_no_walk_depends_on_when_the_table_is_made_anew(monkeypatch):
    """A proposal that were dropped because its nodes might not fit would be made less often than its chance says."""
    found = []
    for room in (2, 64):
        monkeypatch.setattr(bipartite, "ROOM", room)
        one = walker(6, lefts=300, rights=250, many=900)
        filled, fill = [], one._fill
        monkeypatch.setattr(one, "_fill", lambda *pairs, fill=fill, filled=filled: (filled.append(1), fill(*pairs)))
        one.walk(target(one).times(0), 20_000)
        found.append((one.now.pairs.tolist(), one.rng.random()))
        assert bool(filled) == (room == 2)
    assert found[0] == found[1]


def test_a_table_grows_with_what_is_shared():
    """A left node with d pairs makes d^2 / 2 pairs of right ones, and a step changes at most 4 d of them."""
    one = BipartiteChain(PairGraph(np.stack([np.zeros(800, int), np.arange(800)], 1), 1, 800), None, (10, 1))
    assert len(one._table[0]) <= 8 * (800**2 // 2 + 4 * 800)


def test_what_the_chain_believes_is_what_the_queries_count():
    """The definitions of the queries, with fractions, on the graph after a run: all counts within their rounding."""
    one = walker(2, lefts=14, rights=8, many=45)
    one.walk(target(one), 5_000)
    pairs = {tuple(pair): Fraction(1) for pair in one.now.pairs.tolist()}
    plan = graphs.pairs(protected((), left="integer", right="integer"))
    (left, right), slices, counts = one.sides, one.slices, one.counts()
    joint = {(i + 1, j + 1): counts[i * right + j] for i in range(left) for j in range(right)}
    rest = counts[left * right :]
    shared = {(i + 1, k + 1): rest[i * slices + k] for i in range(right) for k in range(slices)}
    for query, believed in ((graphs.pair_buckets, joint), (graphs.butterfly_buckets, shared)):
        found = expected(query(plan), pairs)
        assert set(found) <= set(believed)
        assert all(abs(float(found.get(bin_, 0)) - value) < 1e-6 for bin_, value in believed.items())


def all_graphs(left, right):
    """All simple bipartite graphs with these degrees, as sets of pairs."""
    pairs = [(a, b) for a in range(len(left)) for b in range(len(right))]
    for chosen in combinations(pairs, sum(left)):
        degrees = [Counter(pair[side] for pair in chosen) for side in (0, 1)]
        if degrees == [Counter(dict(enumerate(left))), Counter(dict(enumerate(right)))]:
            yield frozenset(chosen)


def proposed(pairs, wedges):
    """How likely each other graph is proposed, by what `bipartite.py` says of a step, draw by draw."""
    row, fans, size = defaultdict(list), defaultdict(list), len(pairs)
    for u, p in sorted(pairs):
        row[u].append(p)
        fans[p].append(u)
    found = defaultdict(Fraction)

    def propose(chance, u, p, v, q):
        if u != v and p != q and not {(u, q), (v, p)} & pairs:
            found[pairs - {(u, p), (v, q)} | {(u, q), (v, p)}] += chance

    for u, p in pairs:
        for v, q in pairs:
            propose((1 - wedges) / size**2, u, p, v, q)
        for z in set(row[u]) - {p}:
            for other in fans[z]:
                for q in set(row[other]) - {z}:
                    for v in fans[q]:
                        chance = size * (len(row[u]) - 1) * len(fans[z]) * len(row[other]) * len(fans[q])
                        propose(wedges / chance, u, p, v, q)
    return found


@pytest.mark.parametrize(("left", "right"), [([3, 2, 2, 1], [3, 2, 2, 1]), ([4, 3, 1], [2, 2, 2, 1, 1])])
def test_the_chances_of_proposals_and_what_counts_become_of_every_swap(left, right):
    """All graphs with these degrees and all swaps: so the chain is reversible, whatever the answers are."""
    wedges, states = Fraction(1, 2), {}
    for pairs in all_graphs(left, right):
        one = BipartiteChain(PairGraph(np.array(sorted(pairs)), len(left), len(right)), None, (3, 2))
        states[pairs] = one, one.counts(), proposed(pairs, wedges)
    for pairs, (one, counts, chances) in states.items():
        kept = (*one._table, one.graph.share, one._total, one._sliced, cuts(5))
        chain = pair_swaps.Swaps(
            *one._ends, one._owner, one._other, one._at, one._back, *kept, *one._nodes, 3, 2, float(UNIT)
        )
        swaps = [(u, p, v, q) for (u, p), (v, q) in combinations(sorted(pairs), 2) if u != v and p != q]
        swaps = [swap for swap in swaps if not {(swap[0], swap[3]), (swap[2], swap[1])} & pairs]
        assert len(swaps) == len(chances) > 0
        for u, p, v, q in swaps:
            swap = pair_swaps.Swap(u, p, v, q, set(chain.row(u)), set(chain.row(v)), [0] * 5, [0] * 5)
            moved = np.zeros(len(counts))
            chain.movement(swap, moved)
            after = pairs - {(u, p), (v, q)} | {(u, q), (v, p)}
            any_two = 2 * (1 - wedges) / len(pairs)
            for way, chance in ((swap.forth, chances[after]), (swap.back, states[after][2][pairs])):
                assert float(any_two + wedges * Fraction(way)) == pytest.approx(float(chance * len(pairs)), rel=1e-9)
            assert counts + moved == pytest.approx(states[after][1], abs=1e-12)


@thin(2)
@pytest.mark.parametrize(("wedges", "slack"), [(0.0, 0.0), (0.8, 0.05)])
def test_the_chain_tends_to_the_likelihood(wedges, slack):
    """How often it is at each graph with these degrees, by chi square; red by chance less than once in 10^6."""
    left, right = [3, 2, 2, 1], [3, 2, 2, 1]
    every = list(all_graphs(left, right))
    one = BipartiteChain(PairGraph(np.array(sorted(every[0])), 4, 4), np.random.default_rng(1), (2, 2))
    weight = np.where(np.arange(len(one.counts())) >= 4 + 3, 4.0, 0.0)
    weigh = Target(np.zeros(len(weight)), weight, np.full(len(weight), slack), 4)

    def worse(pairs):
        counts = BipartiteChain(PairGraph(np.array(sorted(pairs)), 4, 4), one.rng, one.sides).counts()
        return sum(w * off(count, slack) for w, count in zip(weight, counts, strict=True))

    law = np.exp([-worse(pairs) for pairs in every])
    law /= law.sum()
    assert law.max() > 1.2 * law.min()
    seen = Counter()
    for _ in range(8_000):
        one.walk(weigh, 15, wedges)
        seen[frozenset(map(tuple, one.now.pairs.tolist()))] += 1
    assert set(seen) <= set(every)
    found = np.array([seen[pairs] for pairs in every])
    chi = ((found - 8_000 * law) ** 2 / (8_000 * law)).sum()
    assert chi < len(every) + 8 * np.sqrt(2 * len(every)) + 40


def test_the_largest_degree_is_the_last_that_64_bits_hold():
    """A hub of one million people is counted; beyond LARGEST all that a right node shares would not fit."""
    for degree, fits in ((LARGEST, True), (LARGEST + 1, False)):
        assert bool((np.diff(cuts(buckets_of(degree) + 3)) > 0).all()) == fits
    hub = PairGraph(np.stack([np.repeat(np.arange(10**6), 2), np.tile([0, 1], 10**6)], 1), 10**6, 2)
    whole = shared_in_all(hub)
    assert whole.tolist() == [10**6 * UNIT // 4] * 2 == hub.shared()[1].tolist() * 2
    for left, right in (([LARGEST + 1], [LARGEST + 1]), ([MOST], [LARGEST] * 200)):
        with pytest.raises(PlanError, match="Measure a part"):
            pairs_with_degrees(np.array(left), np.array(right), np.random.default_rng(1))


def test_slices_add_up_to_what_is_shared():
    key, weight, _ = (graph := random_pairs(3)).shared()
    found = sliced(key, weight, graph.rights, 5)
    ends = np.concatenate([key // graph.rights, key % graph.rights])
    assert found.sum(axis=1).tolist() == np.bincount(ends, np.tile(weight, 2), graph.rights).astype(int).tolist()
