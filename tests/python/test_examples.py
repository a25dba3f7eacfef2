"""The examples in the documentation of the Python package run and print what they say."""

import doctest
import importlib
import pkgutil

import pytest

import flambeau
from flambeau import nn

MODULES = [
    found.name
    for found in pkgutil.walk_packages(flambeau.__path__, "flambeau.")
    if "._shim" not in found.name and not found.name.endswith(("__main__", "._C"))
]
NAMES = {"flambeau": flambeau, **{name: getattr(nn, name) for name in ("Linear", "ReLU", "Sequential", "Module")}}


@pytest.mark.parametrize("name", ["flambeau", *MODULES])
def test_examples(name):
    result = doctest.testmod(importlib.import_module(name), extraglobs=NAMES)
    assert result.failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    count = sum(bool(t.examples) for name in ["flambeau", *MODULES] for t in finder.find(importlib.import_module(name)))
    assert count >= 5
