"""nn.Module: registration, look-up, walking, state, hooks, printing, copies."""

import copy
import pickle
from collections import OrderedDict

import pytest

import flambeau as torch
from flambeau import nn


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
        self.register_buffer("b", torch.ones(2))
        self.register_buffer("c", torch.ones(2), persistent=False)
        self.p = nn.Parameter(torch.zeros(1))
        self.n = None
        shared = nn.ReLU()
        self.l = nn.ModuleList([shared, shared])
        self.register_parameter("q", None)

    def extra_repr(self):
        return "line1\nline2"


def names(pairs):
    return [name for name, _ in pairs]


def test_names_of_everything():
    m = Mixed()
    assert list(m.state_dict()) == ["p", "b", "a.weight", "a.bias"]
    assert names(m.named_parameters()) == ["p", "a.weight", "a.bias"]
    assert names(m.named_parameters(recurse=False)) == ["p"]
    assert names(m.named_parameters(prefix="x")) == ["x.p", "x.a.weight", "x.a.bias"]
    assert names(m.named_buffers()) == ["b", "c"]
    assert names(m.named_modules()) == ["", "a", "l", "l.0"]
    assert names(m.named_modules(remove_duplicate=False)) == ["", "a", "l", "l.0", "l.1"]
    assert names(m.named_children()) == ["a", "l"]


def test_shared_parameters_appear_once():
    m = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    m[1].weight = m[0].weight
    assert names(m.named_parameters()) == ["0.weight", "0.bias", "1.bias"]
    assert names(m.named_parameters(remove_duplicate=False)) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert len(m.state_dict()) == 4


def test_repr():
    assert repr(Mixed()) == (
        "Mixed(\n  line1\n  line2\n  (a): Linear(in_features=2, out_features=2, bias=True)\n"
        "  (l): ModuleList(\n    (0-1): 2 x ReLU()\n  )\n)"
    )


def test_an_attribute_moves_between_kinds():
    m = Mixed()
    m.n = nn.Linear(1, 1)
    assert "n" in m._modules
    m.n = nn.Parameter(torch.ones(1))
    assert "n" in m._parameters and "n" not in m._modules
    m.b = None
    assert m.b is None and "b" not in m.state_dict()
    m.c = torch.zeros(1)
    assert dict(m.named_buffers())["c"] is m.c
    m.a = None
    assert m.a is None and "(a): None" in repr(m)
    del m.l
    assert not hasattr(m, "l")


def test_buffer_class():
    m = Mixed()
    m.x = nn.Buffer(torch.ones(1), persistent=False)
    assert isinstance(m.x, nn.Buffer) and isinstance(m.x, torch.Tensor)
    assert "x" not in m.state_dict() and "x" in m._buffers
    assert not isinstance(torch.ones(1), nn.Buffer)


@pytest.mark.parametrize(
    "act, error, text",
    [
        (lambda m: m.foo, AttributeError, "'Linear' object has no attribute 'foo'"),
        (
            lambda m: setattr(m, "weight", torch.ones(2)),
            TypeError,
            "cannot assign 'torch.FloatTensor' as parameter 'weight'",
        ),
        (lambda m: m.register_parameter("a.b", None), KeyError, 'contain "."'),
        (lambda m: m.register_parameter("", None), KeyError, "be empty string"),
        (lambda m: m.register_parameter("w", torch.ones(2)), TypeError, "object to parameter 'w'"),
        (lambda m: m.register_parameter("training", None), KeyError, "already exists"),
        (lambda m: m.register_buffer("w", 3), TypeError, "cannot assign 'int' object to buffer 'w'"),
        (lambda m: m.register_buffer("weight", None), KeyError, "already exists"),
        (lambda m: m.add_module("w", 3), TypeError, "int is not a Module subclass"),
        (lambda m: m.get_submodule("weight"), AttributeError, "is not an nn.Module"),
        (lambda m: m.get_parameter("foo"), AttributeError, "has no attribute `foo`"),
        (lambda m: m.get_buffer("weight"), AttributeError, "is not a buffer"),
        (lambda m: m.to(torch.int64), TypeError, "only accepts floating point or complex dtypes"),
        (lambda m: m.train(3), ValueError, "expected to be boolean"),
        (lambda m: m.load_state_dict(3), TypeError, "dict-like"),
        (lambda m: nn.Module()(3), NotImplementedError, 'missing the required "forward"'),
        (lambda m: nn.Module(3), TypeError, "takes 1 positional argument but 2 were given"),
    ],
)
def test_refusals(act, error, text):
    with pytest.raises(error) as caught:
        act(nn.Linear(2, 2))
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "make", [lambda: nn.Linear(2, 2), lambda: nn.Parameter(torch.ones(1)), lambda: nn.Buffer(torch.ones(1))]
)
def test_assignment_before_init(make):
    class Early(nn.Module):
        def __init__(self):
            self.x = make()

    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
        Early()


def test_load_state_dict_reports_everything_at_once():
    m = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 3))
    state = m.state_dict()
    state["x"] = torch.ones(1)
    state["0.y.z"] = torch.ones(1)
    state["0.weight"] = torch.ones(3, 3)
    del state["1.bias"]
    with pytest.raises(RuntimeError) as caught:
        m.load_state_dict(state)
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Sequential:\n"
        '\tMissing key(s) in state_dict: "1.bias". \n'
        '\tUnexpected key(s) in state_dict: "x", "0.y.z". \n'
        "\tsize mismatch for 0.weight: copying a param with shape torch.Size([3, 3]) from checkpoint, the shape in "
        "current model is torch.Size([3, 2])."
    )
    state["0.weight"] = torch.ones(3, 2)
    keys = m.load_state_dict(state, strict=False)
    assert keys.missing_keys == ["1.bias"] and keys.unexpected_keys == ["x", "0.y.z"]
    assert bool((m[0].weight == 1).all())
    assert repr(m.load_state_dict(m.state_dict())) == "<All keys matched successfully>"


def test_state_dict_shares_memory_and_has_metadata():
    m = nn.Sequential(nn.Linear(2, 2))
    state = m.state_dict()
    assert isinstance(state, OrderedDict)
    assert state._metadata == {"": {"version": 1}, "0": {"version": 1}}
    state["0.bias"].zero_()
    assert m[0].bias.tolist() == [0.0, 0.0] and not state["0.bias"].requires_grad
    assert m.state_dict(keep_vars=True)["0.bias"] is m[0].bias
    assert list(m.state_dict(prefix="net.")) == ["net.0.weight", "net.0.bias"]


def test_load_with_assign_takes_the_dtype():
    m = nn.Linear(2, 2)
    m.load_state_dict({k: v.double() for k, v in m.state_dict().items()}, assign=True)
    assert m.weight.dtype == torch.float64 and m.weight.requires_grad and isinstance(m.weight, nn.Parameter)


def test_extra_state():
    seen = []

    class Extra(nn.Linear):
        def get_extra_state(self):
            return {"k": 1}

        def set_extra_state(self, state):
            seen.append(state)

    m = nn.Sequential(Extra(1, 1))
    state = m.state_dict()
    assert state["0._extra_state"] == {"k": 1}
    m.load_state_dict(state)
    assert seen == [{"k": 1}]
    with pytest.raises(RuntimeError, match="Unexpected key.*_extra_state"):
        nn.Sequential(nn.Linear(1, 1)).load_state_dict(state)


def test_state_hooks():
    m = nn.Sequential(nn.Linear(2, 2))
    log = []
    m[0].register_state_dict_pre_hook(lambda mod, prefix, keep: log.append((prefix, keep)))
    m.register_state_dict_post_hook(lambda mod, state, prefix, meta: state.update(z=torch.ones(1)))
    m.register_load_state_dict_pre_hook(lambda mod, state, *rest: log.append(list(state)))
    m.register_load_state_dict_post_hook(lambda mod, keys: keys.unexpected_keys.clear())
    state = m.state_dict()
    assert list(state) == ["0.weight", "0.bias", "z"] and log == [("0.", False)]
    m.load_state_dict(state)
    assert log[-1] == ["0.weight", "0.bias", "z"]


def test_forward_hooks_in_order():
    m, log = nn.Linear(2, 2), []
    handles = [
        m.register_forward_pre_hook(lambda mod, args: log.append("pre")),
        m.register_forward_pre_hook(
            lambda mod, args, kwargs: (log.append("first"), (args, kwargs))[1], with_kwargs=True, prepend=True
        ),
        m.register_forward_hook(lambda mod, args, out: (log.append("post"), out * 3)[1]),
        m.register_forward_hook(lambda mod, args, kwargs, out: log.append(kwargs), with_kwargs=True),
    ]
    x = torch.ones(1, 2)
    out = m(input=x)
    assert log == ["first", "pre", "post", {"input": x}]
    assert torch.equal(out, torch.nn.functional.linear(x, m.weight, m.bias) * 3)
    for handle in handles:
        handle.remove()
    assert torch.equal(m(x) * 3, out) and not m._forward_hooks and not m._forward_pre_hooks_with_kwargs


def test_always_called_hook():
    m, log = nn.Linear(2, 2), []
    m.register_forward_hook(lambda *a: log.append("always"), always_call=True)
    m.register_forward_hook(lambda *a: log.append("never"))
    with pytest.raises(RuntimeError):
        m(torch.ones(3, 3))
    assert log == ["always"]


def test_backward_hooks_see_and_replace_gradients():
    class Double(nn.Module):
        def forward(self, x):
            return x * 2

    inner, outer, log = Double(), Double(), []
    inner.register_full_backward_hook(lambda mod, gi, go: log.append((gi[0].item(), go[0].item())))
    outer.register_full_backward_pre_hook(lambda mod, go: (go[0] * 10,))
    outer.register_full_backward_hook(lambda mod, gi, go: (gi[0] + 1,))
    x = torch.tensor(3.0, requires_grad=True)
    outer(inner(x)).backward()
    # 1 -> pre-hook 10 -> times 2 -> hook 21 -> times 2
    assert x.grad.item() == 42.0 and log == [(42.0, 21.0)]


def test_backward_hook_without_input_gradient():
    m, log = nn.Linear(2, 1, bias=False), []
    m.register_full_backward_hook(lambda mod, gi, go: log.append((gi, go[0].tolist())))
    with pytest.warns(UserWarning, match="no inputs"):
        m(torch.ones(1, 2)).sum().backward()
    assert log == [((None,), [[1.0]])]


def test_conversions_keep_the_parameter_objects():
    m = nn.Linear(2, 2)
    weight = m.weight
    weight.grad = torch.ones(2, 2)
    m.double()
    assert m.weight is weight and weight.dtype == torch.float64 and weight.grad.dtype == torch.float64
    m.to("cpu", torch.float16)
    m.to(dtype=torch.bfloat16)
    m.to(torch.ones(1))
    assert weight.dtype == torch.float32
    m.to(torch.device("cpu"), non_blocking=True)
    m.requires_grad_(False)
    assert not weight.requires_grad


def test_meta_and_back():
    m = nn.Linear(2, 3).to("meta")
    assert m.weight.is_meta and m.weight.requires_grad
    m.to_empty(device="cpu")
    assert m.weight.shape == (3, 2) and not m.weight.is_meta and isinstance(m.weight, nn.Parameter)


def test_train_eval_and_zero_grad():
    m = nn.Sequential(nn.Linear(2, 2), nn.Dropout())
    assert not m.eval()[1].training and m.train()[1].training
    m(torch.ones(1, 2)).sum().backward()
    m.zero_grad(set_to_none=False)
    assert m[0].weight.grad.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    m.zero_grad()
    assert m[0].weight.grad is None


def test_deepcopy_and_pickle():
    m = Mixed()
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert repr(other) == repr(m) and other.p is not m.p
        assert type(other.p) is nn.Parameter and other.l[0] is other.l[1]
        assert all(torch.equal(a, b) for a, b in zip(m.state_dict().values(), other.state_dict().values()))
        other.a.weight.detach().zero_()
    assert not bool((m.a.weight == 0).all())


def test_parameter():
    p = nn.Parameter(torch.ones(2))
    assert repr(p) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert not nn.Parameter(torch.ones(2), False).requires_grad and nn.Parameter().shape == (0,)
    a, b = copy.deepcopy([p, p])
    assert a is b and a is not p and type(a) is nn.Parameter
    assert type(p * 2) is torch.Tensor
    with pytest.raises(TypeError):
        nn.Parameter(3)


def test_set_submodule_and_apply():
    m, order = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU())), []
    m.set_submodule("1.0", nn.Tanh())
    m.apply(lambda mod: order.append(type(mod).__name__))
    assert order == ["Linear", "Tanh", "Sequential", "Sequential"]
    with pytest.raises(AttributeError):
        m.set_submodule("x.y", nn.ReLU())


def test_parameters_of_a_removed_name_are_found_by_forward():
    """What weight norm and parametrisations do: the name becomes a plain attribute."""
    m = nn.Linear(2, 1, bias=False)
    del m._parameters["weight"]
    m.weight = torch.ones(1, 2) * 3
    assert m(torch.ones(1, 2)).item() == 6.0
