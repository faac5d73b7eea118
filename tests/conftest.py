"""Settings for all tests: the helpers in ``support`` can be imported, hypothesis is reproducible.

``DYNHAC_SOAK=10`` makes the random tests ten times longer and lets hypothesis look in new places.
"""

import signal
import sys
from pathlib import Path

import hypothesis

sys.path.insert(0, str(Path(__file__).parent / "support"))

# A shell starts what it runs in the background with Ctrl-C ignored, and tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

from soak import SOAK

hypothesis.settings.register_profile(
    "dynhac",
    deadline=None,
    derandomize=SOAK == 1,
    database=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large],
)
hypothesis.settings.load_profile("dynhac")
