"""How the tests are run: on a busy machine too, and as many at a time as keep it busy."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# No example of a property has a deadline, and examples may take their time to be found.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: many tests wait for a process or a clock."""
    return (os.cpu_count() or 1) + 1
