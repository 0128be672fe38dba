"""What each version of the formats has written: see `tests.golden.make`."""
