"""One profile for property-based tests: the same examples in every run, and no clock."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "limes",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("limes")
