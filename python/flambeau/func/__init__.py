"""Transforms of functions: derivatives in reverse and forward mode, and vectorisation, nested in any order.

>>> import flambeau as torch
>>> from flambeau.func import grad, vmap
>>> x = torch.randn(3)
>>> torch.allclose(vmap(grad(torch.sin))(x), x.cos())
True
"""

from ._modules import functional_call, stack_module_state
from ._derivatives import functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from ._vmap import vmap

__all__ = [
    "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "stack_module_state", "vjp", "vmap",
]  # fmt: skip
