"""The smaller examples, against the losses that PyTorch 2.15 gives for the same programs and seeds."""

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_vae():
    losses = load("vae").train(200)
    assert [losses[i] for i in (0, 1, 10, -1)] == pytest.approx(
        [45.0035706, 44.2210732, 38.9028244, 29.7762070], rel=1e-4
    )


def test_vae_in_bfloat16():
    losses = load("vae").train(200, bfloat16=True)
    assert losses[0] == pytest.approx(45.0039215, rel=1e-4) and losses[-1] == pytest.approx(29.7797604, rel=2e-3)
