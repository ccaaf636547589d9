"""What doctests and tests share: collections that hold nothing, and the reference engine on records given by hand."""

import os

import pytest
import strategies
from hypothesis import HealthCheck, settings

# A slow or busy machine is not a failing test. In CI the examples are the same in every run of the same code, so that
# a red run names a change; everywhere else each run searches anew.
settings.register_profile(
    "wpinq", deadline=None, derandomize="CI" in os.environ, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("wpinq")


class Doctests:
    """Registered by hand, so that it also reaches the doctests inside the package."""

    @pytest.fixture(autouse=True)
    def names(self, doctest_namespace):
        doctest_namespace["protected"] = strategies.protected
        doctest_namespace["evaluate"] = strategies.evaluate


def pytest_configure(config):
    config.pluginmanager.register(Doctests(), "wpinq doctests")
