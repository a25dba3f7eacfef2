//! Datasets, samplers and loaders.
