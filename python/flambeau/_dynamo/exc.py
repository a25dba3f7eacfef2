"""Exceptions of PyTorch's tracer, for programs that catch them."""


class TorchDynamoException(RuntimeError):
    """A trace failed."""


class InternalTorchDynamoError(TorchDynamoException):
    """A trace failed by its own fault."""


class BackendCompilerFailed(TorchDynamoException):
    """A compiler failed."""


class Unsupported(TorchDynamoException):
    """A trace met what it cannot follow."""
