"""The examples in the package's docstrings run."""

import doctest
import importlib
import pkgutil

import pytest

import dynhac

MODULES = ["dynhac"] + [
    module.name
    for module in pkgutil.walk_packages(dynhac.__path__, "dynhac.")
    if not module.name.endswith(("__main__", "._core"))
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_public_names_are_documented():
    for name in dynhac.__all__:
        thing = getattr(dynhac, name)
        assert thing.__doc__, name
        for attribute, value in vars(thing).items():
            if not attribute.startswith("_") and callable(value):
                assert value.__doc__, f"{name}.{attribute}"
