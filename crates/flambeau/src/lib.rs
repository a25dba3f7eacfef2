//! A PyTorch-class tensor and deep-learning engine.
