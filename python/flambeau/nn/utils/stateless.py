"""A module's call with other parameters than its own."""

from contextlib import contextmanager

from ..._tensor import Tensor

__all__ = ["functional_call"]


def _tied(module):
    """Names of each tensor that the module has under several."""
    names = {}
    for place, part in module.named_modules(remove_duplicate=False):
        for table in (part._parameters, part._buffers):
            for name, tensor in table.items():
                if tensor is not None:
                    names.setdefault(tensor, set()).add(f"{place}.{name}" if place else name)
    return {name: group for group in names.values() for name in group}


def _spread(module, given, tie_weights, strict):
    """The tensors given, tied names included; checked against what the module has."""
    groups = _tied(module)
    if strict:
        missing, unexpected = set(groups) - set(given), set(given) - set(groups)
        if tie_weights:
            missing -= {name for key in given for name in groups.get(key, ())}
        problems = [
            f"{kind} key(s): {', '.join(sorted(keys))}." for kind, keys in
            (("Unexpected", unexpected), ("Missing", missing)) if keys
        ]  # fmt: skip
        if problems:
            raise RuntimeError(
                f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(problems)
            )
    out = dict(given)
    if tie_weights:
        for name in given:
            for other in groups.get(name, ()):
                if other in given and given[other] is not given[name]:
                    raise ValueError(
                        f"functional_call got multiple values for keys {sorted(groups[name])}, which are tied. Consider "
                        "using tie_weights=False"
                    )
                out.setdefault(other, given[name])
    return out


@contextmanager
def _reparametrize_module(module, parameters_and_buffers, tie_weights=False, strict=False, stack_weights=False):
    """Inside, the module has these tensors; what was changed in place stays changed in them."""
    del stack_weights
    replaced = []
    given = _spread(module, parameters_and_buffers, tie_weights, strict)
    try:
        for name, tensor in given.items():
            if not isinstance(tensor, Tensor):
                raise TypeError(f"{name} = {tensor} is not a tensor")
            path, _, last = name.rpartition(".")
            owner = module.get_submodule(path)
            table = next((t for t in (owner._parameters, owner._buffers) if last in t), None)
            if table is None:
                if not hasattr(owner, last):
                    raise AttributeError(f"{type(owner).__name__} has no attribute `{last}`")
                raise TypeError(f"{name} is not a parameter or buffer")
            replaced.append((table, last, table[last]))
            table[last] = tensor
        yield
    finally:
        for table, name, tensor in reversed(replaced):
            table[name] = tensor


def _functional_call(module, given, args=None, kwargs=None, *, tie_weights=True, strict=False):
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, given, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """``module(*args, **kwargs)`` with these tensors in place of its own. The old name of ``func.functional_call``."""
    from warnings import warn

    warn(
        "`nn.utils.stateless.functional_call` is deprecated in favor of `func.functional_call`", FutureWarning,
        stacklevel=2,
    )  # fmt: skip
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)
