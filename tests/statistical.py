"""The level and the sample sizes of every statistical test, in one place."""

LEVEL = 1e-6
"""A correct program fails a test with this probability."""

DRAWS = 20_000
"""Independent draws a distribution is tested on."""
