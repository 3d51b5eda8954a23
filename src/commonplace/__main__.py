"""The program, where it is started as `python -m commonplace`."""

from commonplace.cli.main import main

main()
