"""``python -m dynhac.cli``: the same as the script ``dynhac``."""

from dynhac.cli import main

main()
