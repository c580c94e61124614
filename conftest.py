"""What all tests have in common, those beside the images' Python too."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "project",
    max_examples=1000 if os.environ.get("SOAK") else 25,
    # Both go by the clock on the wall: on a busy machine they fail tests that are right.
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("project")
