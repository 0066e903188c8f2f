"""A busy machine is no failure: no example of a property has a deadline, and examples may take their time to be found."""

from hypothesis import HealthCheck, settings

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
