"""What dir() shows is what the documentation describes."""

import inspect
from functools import cached_property
from pathlib import Path

import pytest

import dynhac
import dynhac.neighbors
import dynhac.reference
import dynhac.river
import dynhac.sklearn
import dynhac.spark
import dynhac.store

FOLDERS = (dynhac, dynhac.neighbors, dynhac.reference, dynhac.river, dynhac.sklearn, dynhac.spark)
SUBFOLDERS = {"neighbors", "reference", "river", "sklearn", "spark"}
NOT_OURS = {"count", "index"} | set(dir(Exception))  # of tuples and exceptions
PAGES = "\n".join(page.read_text() for page in Path(__file__).parents[2].glob("docs/**/*.md"))


def public(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


def documented(owner, name):
    """Whether an attribute has a docstring of its own, or its class describes it."""
    found = inspect.getattr_static(owner, name)
    described = [base.__doc__ or "" for base in owner.__mro__]
    plain = not (callable(found) or isinstance(found, (classmethod, property, cached_property)))
    if plain or type(found).__name__ in ("member_descriptor", "_tuplegetter"):
        return any(name in text for text in described) or f"`{name}`" in PAGES
    return bool(inspect.getdoc(found))


def test_modules_show_their_public_names_only():
    for folder in FOLDERS:
        extra = {"open", *SUBFOLDERS} if folder is dynhac else set()
        assert public(folder) == {*folder.__all__, *extra}
        assert all(getattr(folder, name) is not None for name in public(folder))


@pytest.mark.parametrize(
    "owner",
    [
        dynhac.store.DurableDynHAC,
        dynhac.store.DurableGraphHAC,
        *(
            thing
            for folder in FOLDERS
            for name in folder.__all__
            if inspect.isclass(thing := getattr(folder, name))
        ),
    ],
)
def test_what_a_class_shows_is_documented(owner):
    undocumented = {
        name
        for name in public(owner) - NOT_OURS
        if not name.endswith("_metadata_routing") and not documented(owner, name)
    }
    assert not undocumented


INTERNALS = {"advance", "handle", "restored", "of", "tree", "intact", "_file_kind"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_internals_are_not_shown(folder):
    for name in folder.__all__:
        assert not public(getattr(folder, name)) & INTERNALS, name
