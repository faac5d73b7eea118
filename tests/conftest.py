"""Settings for all tests: the helpers in this folder can be imported, hypothesis is reproducible.

``DYNHAC_SOAK=10`` makes the random tests ten times longer and lets hypothesis look in new places.
"""

import os
import signal
import sys
from pathlib import Path

import hypothesis

sys.path.insert(0, str(Path(__file__).parent))

# A shell starts what it runs in the background with Ctrl-C ignored, and tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SOAK = int(os.environ.get("DYNHAC_SOAK", "1"))
hypothesis.settings.register_profile(
    "dynhac",
    deadline=None,
    derandomize=SOAK == 1,
    database=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large],
)
hypothesis.settings.load_profile("dynhac")
