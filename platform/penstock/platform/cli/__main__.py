"""Entry point of `python -m penstock.platform.cli`, which is the same as `penstock`."""

from penstock.platform.cli.main import main

main()
