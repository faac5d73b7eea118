"""The version of the package, as it is installed."""

from importlib.metadata import version

__version__ = version("dynhac")
