"""One thread a process, and one profile of property-based tests: the same examples always, and no clock."""

import os

# Before anything that reads them is loaded. Two workers of two threads each, which spin while they wait for
# each other, take ten times as long on two cores as two of one; LightGBM takes two threads whatever is set
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from hypothesis import HealthCheck, settings

from effort import examples

settings.register_profile(
    "limes",
    max_examples=examples(100),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("limes")
