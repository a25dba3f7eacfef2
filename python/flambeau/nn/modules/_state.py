"""``state_dict`` and ``load_state_dict``: a module's tensors by dotted name, out and in."""

from collections import OrderedDict, namedtuple

from ... import _grad_mode
from ..._tensor import Tensor
from ..parameter import Parameter
from ._hooks import _add

EXTRA_STATE = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What ``load_state_dict`` returns: names that the file lacks, names that the module lacks."""

    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def _has_extra_state(module, base):
    return type(module).get_extra_state is not base.get_extra_state


class StateMixin:
    """What :class:`Module` knows about saving and loading its tensors."""

    _version = 1

    def get_extra_state(self):
        """State beyond tensors that ``state_dict`` shall carry; a subclass overrides it with ``set_extra_state``."""
        raise RuntimeError("get_extra_state of nn.Module was reached: a subclass that has extra state overrides it")

    def set_extra_state(self, state):
        """Take back what ``get_extra_state`` gave."""
        raise RuntimeError(
            f"{type(self).__name__} was given extra state to load but has no set_extra_state: override it"
        )

    # ---- out

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """Put this module's own tensors, not its children's, into ``destination``."""
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if _has_extra_state(self, StateMixin):
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """An ordered dictionary of all parameters and persistent buffers, sharing their memory.

        ``keep_vars`` keeps the parameters themselves instead of detached tensors.
        """
        if args:  # the order of a deprecated positional form that saved programs still use
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, child in self._modules.items():
            if child is not None:
                child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            given = hook(self, destination, prefix, local_metadata)
            if not getattr(hook, "_from_public_api", False):
                destination = destination if given is None else given
            elif given is not None:
                raise RuntimeError("state_dict post-hook must return None")
        return destination

    def register_state_dict_pre_hook(self, hook):
        """Call ``hook(module, prefix, keep_vars)`` before ``state_dict`` collects this module."""
        return _add(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook):
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after ``state_dict`` collected this module."""
        hook._from_public_api = True
        return _add(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook):
        """As ``register_state_dict_post_hook``; the hook may return another dictionary."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError("this hook was already registered by register_state_dict_post_hook")
        return _add(self._state_dict_hooks, hook)

    # ---- in

    def register_load_state_dict_pre_hook(self, hook):
        """Call ``hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors)`` before loading."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        if with_module:
            from functools import partial

            hook = partial(hook, self)
        return _add(self._load_state_dict_pre_hooks, hook)

    def register_load_state_dict_post_hook(self, hook):
        """Call ``hook(module, incompatible_keys)`` after loading; the hook may edit the two lists in place."""
        return _add(self._load_state_dict_post_hooks, hook)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        """Copy this module's own tensors, not its children's, out of ``state_dict``; report, never raise."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        for table in (self._parameters, self._buffers):
            for name, mine in table.items():
                if mine is None or (table is self._buffers and name in self._non_persistent_buffers_set):
                    continue
                key = prefix + name
                if key in state_dict:
                    self._load_one(key, name, mine, state_dict[key], assign, error_msgs)
                elif strict:
                    missing_keys.append(key)
        key = prefix + EXTRA_STATE
        if _has_extra_state(self, StateMixin) or type(self).set_extra_state is not StateMixin.set_extra_state:
            if key in state_dict:
                self.set_extra_state(state_dict[key])
            elif strict:
                missing_keys.append(key)
        elif strict and key in state_dict:
            unexpected_keys.append(key)
        if strict:
            self._find_unexpected(state_dict, prefix, unexpected_keys)

    def _find_unexpected(self, state_dict, prefix, unexpected_keys):
        own = {n for n, p in self._parameters.items() if p is not None}
        own |= {n for n, b in self._buffers.items() if b is not None and n not in self._non_persistent_buffers_set}
        for key in state_dict:
            if key.startswith(prefix) and key != prefix + EXTRA_STATE:
                head, _, rest = key[len(prefix) :].partition(".")
                if (head not in self._modules) if rest else (head not in own):
                    unexpected_keys.append(key)

    def _load_one(self, key, name, mine, given, assign, error_msgs):
        if not isinstance(given, Tensor):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint but '
                f"received {type(given)}"
            )
            return
        if mine.dim() == 0 and given.dim() == 1 and given.numel() == 1:  # files written before 0-dim tensors existed
            given = given[0]
        if mine.shape != given.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, "
                f"the shape in current model is {mine.shape}."
            )
            return
        if mine.is_meta and not given.is_meta and not assign:
            from warnings import warn

            warn(f"for {key}: a meta parameter holds no numbers, so loading into it does nothing; use assign=True")
        try:
            with _grad_mode.no_grad():
                if assign:
                    if isinstance(mine, Parameter) and not isinstance(given, Parameter):
                        given = Parameter(given, requires_grad=mine.requires_grad)
                    else:
                        given.requires_grad_(mine.requires_grad)
                    setattr(self, name, given)
                else:
                    mine.copy_(given)
        except Exception as error:
            error_msgs.append(
                f'While copying the parameter named "{key}", whose dimensions in the model are {mine.shape} and '
                f"whose dimensions in the checkpoint are {given.shape}, an exception occurred: {error.args}."
            )

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copy tensors from ``state_dict`` into the parameters and buffers of the same names.

        With ``strict`` the names must be the same on both sides; every missing, unexpected and mismatched name is
        listed in one ``RuntimeError``. With ``assign`` the tensors given take the places of the module's own, dtype
        and device included. Returns ``(missing_keys, unexpected_keys)``.
        """
        from collections.abc import Mapping

        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing, unexpected, errors = [], [], []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata
        self._load_tree(state_dict, "", metadata or {}, assign, missing, unexpected, errors)
        if strict:
            for kind, keys in (("Unexpected", unexpected), ("Missing", missing)):
                if keys:
                    listed = ", ".join(f'"{key}"' for key in keys)
                    errors.insert(0, f"{kind} key(s) in state_dict: {listed}. ")
        if errors:
            report = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{report}")
        return _IncompatibleKeys(missing, unexpected)

    def _load_tree(self, state_dict, prefix, metadata, assign, missing, unexpected, errors):
        local = dict(metadata.get(prefix[:-1], {}))
        if assign:
            local["assign_to_params_buffers"] = True
        self._load_from_state_dict(state_dict, prefix, local, True, missing, unexpected, errors)
        for name, child in self._modules.items():
            if child is not None:
                inner = f"{prefix}{name}."
                part = OrderedDict((k, v) for k, v in state_dict.items() if k.startswith(inner))
                child._load_tree(part, inner, metadata, assign, missing, unexpected, errors)
        keys = _IncompatibleKeys(missing, unexpected)
        for hook in self._load_state_dict_post_hooks.values():
            if hook(self, keys) is not None:
                raise RuntimeError(
                    "a load_state_dict post-hook must return None: edit the two lists of incompatible_keys in place"
                )
