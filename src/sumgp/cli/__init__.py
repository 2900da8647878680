"""The command line: ``sumgp fit | predict | check | report | demo | app | reproduce | bench``."""
