"""``compile``: the function itself, until flambeau compiles."""

from ._once import warn_once


def compile(
    model=None, *, fullgraph=False, dynamic=None, backend="inductor", mode=None, options=None, disable=False, name=None,
    recompile_limit=None, isolate_recompiles=False, dynamic_shapes=None,
):  # fmt: skip
    """``model`` (a function or a module), which runs eagerly with the same results. Also a decorator.

    A module is wrapped, as PyTorch wraps it: the attribute ``_orig_mod`` is the module, and keys of the state start
    with its name.
    """
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if model is None:
        return lambda function: compile(function, fullgraph=fullgraph, disable=disable)
    if not callable(model):
        raise RuntimeError(f"torch.compile expects a function or a module, got {type(model).__name__}")
    if not disable:
        warn_once("flambeau does not compile yet: the program runs eagerly, with the same results", stacklevel=2)
    from .nn import Module

    if isinstance(model, Module):
        from ._dynamo.eval_frame import OptimizedModule

        return model if isinstance(model, OptimizedModule) else OptimizedModule(model)
    return model
