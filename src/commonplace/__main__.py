"""Run the command line with `python -m commonplace`."""

from commonplace.cli.main import main

main()
