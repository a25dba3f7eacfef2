"""Hooks of a module: where they are kept, how they are registered, and the call that obeys them."""

from collections import OrderedDict

from ...utils.hooks import RemovableHandle

_global_forward_pre_hooks = OrderedDict()
_global_forward_hooks = OrderedDict()
_global_forward_hooks_always_called = OrderedDict()
_global_backward_pre_hooks = OrderedDict()
_global_backward_hooks = OrderedDict()

HOOK_TABLES = (
    "_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_state_dict_hooks",
    "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip


class CallState:
    """``hooked`` turns true with the first hook of the process that a call has to obey, and stays true.

    Until then a module's call is its forward and nothing else.
    """

    hooked = False


def _add(hooks, hook, *, prepend=False, marks=()):
    """Enter ``hook`` into ``hooks``, and its id into each of ``marks``."""
    if not callable(hook):
        raise TypeError(f"a hook must be callable, got {type(hook).__name__}")
    handle = RemovableHandle(hooks, extra_dict=list(marks))
    hooks[handle.id] = hook
    for mark in marks:
        mark[handle.id] = True
    if prepend:
        for table in (hooks, *marks):
            table.move_to_end(handle.id, last=False)
    return handle


class HookMixin:
    """What :class:`Module` knows about hooks on its call."""

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Call ``hook(module, args)`` before each forward; what it returns replaces the arguments.

        With ``with_kwargs`` it is ``hook(module, args, kwargs)`` and returns ``(args, kwargs)`` or None.
        """
        CallState.hooked = True
        marks = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        return _add(self._forward_pre_hooks, hook, prepend=prepend, marks=marks)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Call ``hook(module, args, output)`` after each forward; what it returns replaces the output.

        With ``with_kwargs`` it is ``hook(module, args, kwargs, output)``; with ``always_call`` it also runs where
        the forward raised.
        """
        CallState.hooked = True
        marks = [self._forward_hooks_with_kwargs] if with_kwargs else []
        marks += [self._forward_hooks_always_called] if always_call else []
        return _add(self._forward_hooks, hook, prepend=prepend, marks=marks)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Call ``hook(module, grad_output)`` before the module's backward; what it returns replaces grad_output."""
        CallState.hooked = True
        return _add(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """Call ``hook(module, grad_input, grad_output)`` once the gradients of the module's inputs are known."""
        if self._is_full_backward_hook is False:
            raise RuntimeError("cannot use both regular backward hooks and full backward hooks on a single Module")
        self._is_full_backward_hook = True
        CallState.hooked = True
        return _add(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook):
        """Deprecated by PyTorch, and wrong there for modules of several operations; always refused here."""
        raise NotImplementedError("register_backward_hook gives wrong gradients: use register_full_backward_hook")

    def _call_hooked(self, args, kwargs):
        """The call of a module on which, or on all modules, hooks are registered."""
        called = set()
        try:
            args, kwargs = self._run_pre_hooks(args, kwargs)
            gates = None
            if self._backward_hooks or self._backward_pre_hooks or _global_backward_hooks or _global_backward_pre_hooks:
                from ._gates import BackwardGates

                pre = (*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values())
                post = (*_global_backward_hooks.values(), *self._backward_hooks.values())
                gates = BackwardGates(self, pre, post)
                args = gates.enter(args)
            result = self.forward(*args, **kwargs)
            result = self._run_hooks(args, kwargs, result, called)
            return result if gates is None else gates.leave(result)
        except Exception:
            self._run_always_called(args, kwargs, called)
            raise

    def _run_pre_hooks(self, args, kwargs):
        own, with_kwargs = self._forward_pre_hooks, self._forward_pre_hooks_with_kwargs
        for hook in tuple(_global_forward_pre_hooks.values()):
            given = hook(self, args)
            if given is not None:
                args = given if isinstance(given, tuple) else (given,)
        for key, hook in tuple(own.items()):
            if key in with_kwargs:
                given = hook(self, args, kwargs)
                if given is not None:
                    if not (isinstance(given, tuple) and len(given) == 2):
                        raise RuntimeError(
                            "forward pre-hook with kwargs must return None or a tuple of (new_args, new_kwargs), "
                            f"but got {given}"
                        )
                    args, kwargs = given
            else:
                given = hook(self, args)
                if given is not None:
                    args = given if isinstance(given, tuple) else (given,)
        return args, kwargs

    def _run_hooks(self, args, kwargs, result, called):
        for table, with_kwargs in (
            (_global_forward_hooks, {}),
            (self._forward_hooks, self._forward_hooks_with_kwargs),
        ):
            for key, hook in tuple(table.items()):
                called.add(key)
                given = hook(self, args, kwargs, result) if key in with_kwargs else hook(self, args, result)
                if given is not None:
                    result = given
        return result

    def _run_always_called(self, args, kwargs, called):
        """Run the hooks that were promised a call although the forward failed; their own failures only warn."""
        from warnings import warn

        for table, marks, with_kwargs in (
            (_global_forward_hooks, _global_forward_hooks_always_called, {}),
            (self._forward_hooks, self._forward_hooks_always_called, self._forward_hooks_with_kwargs),
        ):
            for key, hook in tuple(table.items()):
                if key not in marks or key in called:
                    continue
                try:
                    hook(self, args, kwargs, None) if key in with_kwargs else hook(self, args, None)
                except Exception as error:
                    warn(
                        f"a forward hook with ``always_call=True`` raised an exception that was silenced, as the "
                        f"forward had already failed: {error}",
                        stacklevel=2,
                    )


def register_module_forward_pre_hook(hook):
    """Call ``hook(module, args)`` before the forward of every module."""
    CallState.hooked = True
    return _add(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Call ``hook(module, args, output)`` after the forward of every module."""
    if with_kwargs:
        raise NotImplementedError("a forward hook of all modules with kwargs is not supported by flambeau yet")
    CallState.hooked = True
    return _add(_global_forward_hooks, hook, marks=[_global_forward_hooks_always_called] if always_call else [])


def register_module_full_backward_pre_hook(hook):
    """Call ``hook(module, grad_output)`` before the backward of every module."""
    CallState.hooked = True
    return _add(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook):
    """Call ``hook(module, grad_input, grad_output)`` in the backward of every module."""
    CallState.hooked = True
    return _add(_global_backward_hooks, hook)
