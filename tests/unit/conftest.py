"""Settings of the unit tests."""

from hypothesis import settings

# the same inputs on every run and no clock: a slow machine must not fail a property
settings.register_profile("report", derandomize=True, deadline=None)
settings.load_profile("report")
