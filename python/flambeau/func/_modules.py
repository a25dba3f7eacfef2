"""States of modules as arguments of functions."""

from .. import stack
from ..nn import Module
from ..nn.utils.stateless import _functional_call


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """``module(*args, **kwargs)`` with these tensors, by name, in place of its own; several dictionaries are joined.

    >>> import flambeau as torch
    >>> layer = torch.nn.Linear(2, 1, bias=False)
    >>> torch.func.functional_call(layer, {"weight": torch.ones(1, 2)}, (torch.ones(2),))
    tensor([2.])
    """
    if isinstance(parameter_and_buffer_dicts, dict):
        given = parameter_and_buffer_dicts
    elif isinstance(parameter_and_buffer_dicts, (list, tuple)):
        if not all(isinstance(part, dict) for part in parameter_and_buffer_dicts):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        given = {}
        for part in parameter_and_buffer_dicts:
            if repeated := sorted(set(given) & set(part)):
                raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
            given.update(part)
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(parameter_and_buffer_dicts)}"
        )
    return _functional_call(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models):
    """Parameters and buffers of models of one class, those of one name stacked along dimension 0: two dictionaries.

    >>> import flambeau as torch
    >>> models = [torch.nn.Linear(2, 3) for _ in range(4)]
    >>> parameters, buffers = torch.func.stack_module_state(models)
    >>> parameters["weight"].shape
    torch.Size([4, 3, 2])
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not all(isinstance(model, Module) for model in models):
        raise RuntimeError("stack_module_state: Expected all models to be nn.Modules")
    if len({model.training for model in models}) != 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(model) for model in models}) != 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = _stacked([dict(model.named_parameters()) for model in models])
    buffers = _stacked([dict(model.named_buffers()) for model in models])
    return parameters, buffers


def _stacked(states):
    made = {}
    for name in states[0]:
        tensors = [state[name] for state in states]
        if len({t.requires_grad for t in tensors}) != 1:
            raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
        stacked = stack([t.detach() for t in tensors])
        made[name] = stacked.requires_grad_(tensors[0].requires_grad)
    return made
