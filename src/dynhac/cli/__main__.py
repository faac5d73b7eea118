"""``python -m dynhac.cli``: the command line without its script."""

from dynhac.cli import main

main()
