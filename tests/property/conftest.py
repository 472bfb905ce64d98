"""How many examples: `pytest tests/property --hypothesis-profile=long` tries for hours what CI tries for seconds;
`few` is for builds that are slow (tests/native/test_sanitizers.py)."""

from hypothesis import HealthCheck, settings

settings.register_profile("ci", max_examples=700, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("few", settings.get_profile("ci"), max_examples=60)
settings.register_profile("long", settings.get_profile("ci"), max_examples=100_000)
settings.load_profile("ci")
