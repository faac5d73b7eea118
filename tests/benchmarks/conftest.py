"""Makes the package ``benchmarks`` importable, and hides a data folder of the user."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch):
    monkeypatch.delenv("DYNHAC_DATA", raising=False)
