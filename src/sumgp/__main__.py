"""``python -m sumgp`` is the program ``sumgp``."""

from sumgp.cli.app import main

main()
