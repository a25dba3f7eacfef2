//! PyTorch's `.pt` files.
