"""`python -m penstock.platform.cli`: the same as `penstock`."""

from penstock.platform.cli.main import main

main()
