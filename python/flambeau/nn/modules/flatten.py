"""Layers that merge dimensions or split one."""

from .module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Merges the dimensions from ``start_dim`` to ``end_dim``; by default all but the batch."""

    __constants__ = ["start_dim", "end_dim"]

    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input):
        """The same numbers in fewer dimensions."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self):
        """The range of dimensions."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits dimension ``dim`` into the sizes ``unflattened_size``, of which one may be -1."""

    __constants__ = ["dim", "unflattened_size"]

    def __init__(self, dim, unflattened_size):
        super().__init__()
        if not isinstance(dim, int):
            raise TypeError(f"Unflatten takes the dimension's number, got {dim!r}; named dimensions are not supported")
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                f"unflattened_size must be a tuple of ints, but found type {type(unflattened_size).__name__}"
            )
        for at, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    f"unflattened_size must be tuple of ints, but found element of type {type(size).__name__} at pos {at}"
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input):
        """The same numbers in more dimensions."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self):
        """The dimension and its new sizes."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
