from __future__ import annotations

import pytest

from tests.doctor.damage import example, script
from tests.runner.driving import Project


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The example, run to its end. Its log must stay as it is."""
    project = example(tmp_path_factory.mktemp("recorded"))
    project.run(script)
    return project
