"""One thread a process, and one profile of property-based tests: the same examples in every run, and no clock."""

import os

# Two workers on two cores: OpenMP's threads wait for each other by spinning, which makes models ten times slower.
# Set before anything that reads it is loaded
os.environ.setdefault("OMP_NUM_THREADS", "1")

from hypothesis import HealthCheck, settings  # noqa: E402

settings.register_profile(
    "limes",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("limes")
