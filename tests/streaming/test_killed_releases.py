"""Hosts that follow a release, killed (SIGKILL) where it hurts most and at random moments. Attacks 13 and 42.

Each record is counted in exactly one period, each period is charged once, and what was published never changes.
"""

from __future__ import annotations

from contextlib import closing

import pytest
from depth import deep
from streaming import follows
from streaming.breaking import broken, running_server
from streaming.broken_releases import Hosts

PLANS = ["take before", "take after", "close before", "close after"]


@pytest.fixture(scope="module")
def forks():
    pytest.importorskip("psycopg")
    with closing(follows.Forks()) as result:
        yield result


@pytest.mark.slow
def test_killed_before_and_after_each_act_the_next_host_goes_on(forks, shared_ledger, stream_server, tmp_path):
    """In the middle of a period, between storing and closing, and between closing and publishing."""
    with closing(Hosts(forks, stream_server, tmp_path, 1, plans=PLANS, hosts=5, workers=1)) as hosts:
        hosts.write(30)
        hosts.settles(lambda: hosts.turns >= 3)  # "take" killed two of them
        hosts.clock(1)
        hosts.settles(lambda: hosts.turns >= 5)
        hosts.write(30)
        assert hosts.settled() == ""
        assert sum(follows.Forks.lives(number) for number in hosts.hosts) == 1
        assert hosts.turns == 5


@pytest.mark.slow
def test_killed_frozen_and_cut_at_random_each_line_is_in_one_period(forks, shared_ledger, stream_server, tmp_path):
    with closing(Hosts(forks, stream_server, tmp_path, 2)) as hosts:
        assert broken(hosts, 6) == ""


@deep("more moments, and a server that is killed")
@pytest.mark.parametrize("seed", range(3))
def test_killed_frozen_and_cut_at_more_moments(forks, tmp_path, seed):
    with running_server() as cluster, closing(Hosts(forks, cluster.url, tmp_path, seed, cluster=cluster)) as hosts:
        assert broken(hosts, 40) == ""
        assert set(hosts.did) >= {"kill", "freeze", "hour", "server"}
