"""What all tests have in common, those in the folders of images included."""

import gc

gc.disable()  # in imports, of which collections take a third

import pytest  # noqa: E402 - as above
from hypothesis import HealthCheck, Phase, settings  # noqa: E402

from tests.soak import SOAK, times  # noqa: E402

settings.register_profile(
    "project",
    max_examples=times(25, 1000),
    # Both go by the clock on the wall: on a busy machine they fail tests that are right.
    deadline=None,
    # Without the phase that explains a failure: it runs the test for minutes after the smallest input is known.
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.target, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("project")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests marked `soak`, but with SOAK=1. A skipped test would be a result; these were not asked for."""
    rare = [] if SOAK else [item for item in items if item.get_closest_marker("soak")]
    if rare:
        config.hook.pytest_deselected(items=rare)
        items[:] = [item for item in items if not item.get_closest_marker("soak")]


def pytest_collection_finish() -> None:
    """Collect garbage again, but not what is imported."""
    gc.freeze()
    gc.enable()
