"""What all tests have in common, those beside the images' Python too."""

from hypothesis import HealthCheck, settings

# Both go by the clock on the wall: on a busy machine they fail tests that are right.
settings.register_profile("project", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("project")
