"""``compile``: the function itself, until flambeau compiles."""


def compile(
    model=None, *, fullgraph=False, dynamic=None, backend="inductor", mode=None, options=None, disable=False, name=None,
    recompile_limit=None, isolate_recompiles=False, dynamic_shapes=None,
):  # fmt: skip
    """``model`` (a function or a module) unchanged: it runs eagerly, with the same results. Also a decorator."""
    if model is None:
        return lambda function: compile(function)
    from warnings import warn

    warn("flambeau does not compile yet: the program runs eagerly, with the same results", stacklevel=2)
    return model
