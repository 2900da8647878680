"""The command line: ``sumgp fit | predict | check | report | demo | reproduce``."""

from sumgp.cli.progress import stages

__all__ = [
    "stages",
]
