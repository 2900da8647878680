"""The commands `sumgp reproduce` and `sumgp bench`."""
