"""Weight norm by a hook before each forward, as PyTorch first had it."""

from ..parameter import Parameter

__all__ = ["WeightNorm", "weight_norm", "remove_weight_norm"]


class WeightNorm:
    """The hook: computes a weight from ``name_g`` and ``name_v``."""

    def __init__(self, name, dim):
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module):
        """``g v / |v|``."""
        from .parametrizations import norm_except_dim

        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        weight = v * (g / norm_except_dim(v, self.dim))
        # A copy of the module may have its values: its own forward computes it anew from its own g and v.
        weight._computed_anew = True
        return weight

    @staticmethod
    def apply(module, name, dim):
        """Put the hook on ``module``."""
        from .parametrizations import norm_except_dim

        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        made = WeightNorm(name, dim)
        weight = getattr(module, name)
        del module._parameters[name]
        module.register_parameter(f"{name}_g", Parameter(norm_except_dim(weight, made.dim).detach()))
        module.register_parameter(f"{name}_v", Parameter(weight.detach()))
        setattr(module, name, made.compute_weight(module))
        module.register_forward_pre_hook(made)
        return made

    def remove(self, module):
        """Make the weight a parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[f"{self.name}_g"], module._parameters[f"{self.name}_v"]
        setattr(module, self.name, Parameter(weight.detach()))

    def __call__(self, module, inputs):
        """Compute the weight anew."""
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module, name="weight", dim=0):
    """``g v / |v|`` for the weight; ``parametrizations.weight_norm`` does the same without a hook."""
    from warnings import warn

    warn(
        "`nn.utils.weight_norm` is deprecated in favor of `nn.utils.parametrizations.weight_norm`.", FutureWarning,
        stacklevel=2,
    )  # fmt: skip
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module, name="weight"):
    """Take the hook away, and keep the weight."""
    for key, hook in list(module._forward_pre_hooks.items()):
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
