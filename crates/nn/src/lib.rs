//! Layers, losses, initialisers and optimizers.
