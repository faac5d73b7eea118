"""How much longer than usual the random tests run: ``DYNHAC_SOAK`` times."""

import os

SOAK = int(os.environ.get("DYNHAC_SOAK", "1"))
