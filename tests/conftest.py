"""What doctests and tests share: collections that hold nothing, and the reference engine on records given by hand."""

import os

import pytest
import strategies
from hypothesis import HealthCheck, settings

# No run is red by chance: examples are the same in every run of the same code, so a red run names a change.
# WPINQ_TESTS=search draws other examples in every run, ten times as many where a test does not say how many, and prints
# what repeats a failure. A slow or busy machine is not a failing test.
RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", RELAXED, derandomize=True)
settings.register_profile("search", RELAXED, derandomize=False, print_blob=True, max_examples=1000)
settings.load_profile(os.environ.get("WPINQ_TESTS", "same"))


class Doctests:
    """Registered by hand, so that it also reaches the doctests inside the package."""

    @pytest.fixture(autouse=True)
    def names(self, doctest_namespace):
        doctest_namespace["protected"] = strategies.protected
        doctest_namespace["evaluate"] = strategies.evaluate


def pytest_configure(config):
    config.pluginmanager.register(Doctests(), "wpinq doctests")
