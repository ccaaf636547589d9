"""What doctests and tests share: collections that hold nothing, and the reference engine on records given by hand."""

import pytest
import strategies
from hypothesis import HealthCheck, settings

# a slow or busy machine is not a failing test
settings.register_profile("wpinq", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("wpinq")


class Doctests:
    """Registered by hand, so that it also reaches the doctests inside the package."""

    @pytest.fixture(autouse=True)
    def names(self, doctest_namespace):
        doctest_namespace["protected"] = strategies.protected
        doctest_namespace["evaluate"] = strategies.evaluate


def pytest_configure(config):
    config.pluginmanager.register(Doctests(), "wpinq doctests")
