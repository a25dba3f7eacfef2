"""Modules whose parameters get their shapes from the first input."""

from ..parameter import UninitializedParameter, is_lazy

__all__ = ["LazyModuleMixin"]


def lazy_parameter(given):
    """An uninitialised parameter on the device and of the dtype among keyword arguments."""
    return UninitializedParameter(device=given.get("device"), dtype=given.get("dtype"))


class LazyModuleMixin:
    """Base of lazy modules: a subclass gives ``initialize_parameters(*args)``, which makes the parameters' shapes.

    It runs before the first forward; then the module becomes ``cls_to_become``.
    """

    cls_to_become = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args, **kwargs):
        """Make the parameters for these inputs."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self):
        """Whether a parameter or buffer has no shape yet."""
        return any(is_lazy(value) for value in (*self._parameters.values(), *self._buffers.values()))

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        tables = ((self._parameters, ()), (self._buffers, self._non_persistent_buffers_set))
        for table, left_out in tables:
            for name, value in table.items():
                if value is not None and name not in left_out:
                    destination[prefix + name] = value if is_lazy(value) or keep_vars else value.detach()

    def _lazy_load_hook(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        """Give parameters without a shape that of what is loaded."""
        for name, value in (*self._parameters.items(), *self._buffers.items()):
            given = state_dict.get(prefix + name)
            if value is not None and given is not None and is_lazy(value) and not is_lazy(given):
                value.materialize(given.shape)

    def _infer_parameters(self, module, args, kwargs=None):
        kwargs = kwargs or {}
        module.initialize_parameters(*args, **kwargs)
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self):
        raise RuntimeError("Modules with uninitialized parameters can't be used with `DataParallel`: run a forward first")
