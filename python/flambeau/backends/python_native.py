"""Kernels in Python's kernel languages: flambeau has kernels of its own instead."""

all_dsls = []
available_dsls = []
