"""Hooks on saved tensors, nodes and edges of the graph, hooks on gradients. Values and orders are PyTorch 2.15's."""

import gc
import threading
import weakref

import pytest

import flambeau as torch
from flambeau.autograd import Function
from flambeau.autograd import graph as G


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(x, y, None)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y, nothing = ctx.saved_tensors
        assert nothing is None
        return g * y


# ---- saved tensors


def test_pack_and_unpack_are_called_once_each():
    log = []

    def pack(x):
        log.append(("pack", tuple(x.shape), torch.is_grad_enabled()))
        return x.detach().numpy().copy()

    def unpack(x):
        log.append(("unpack", x.shape, torch.is_grad_enabled()))
        return torch.from_numpy(x)

    a = leaf(1.0, 2.0)
    b = a * 3
    with G.saved_tensors_hooks(pack, unpack):
        y = b * b
    assert log == [("pack", (2,), False)] * 2
    y.sum().backward()
    assert log[2:] == [("unpack", (2,), False)] * 2
    assert a.grad.tolist() == [18.0, 36.0]


def test_inner_hooks_count_and_an_output_is_packed():
    a = leaf(1.0)
    with G.saved_tensors_hooks(lambda x: 1 / 0, lambda x: x):
        with G.saved_tensors_hooks(lambda x: x * 2, lambda x: x / 2):
            y = a.exp()
        with pytest.raises(ZeroDivisionError):
            a.exp()
    assert y.grad_fn._saved_result.item() == pytest.approx(2.7182818)
    y.backward()
    assert a.grad.item() == pytest.approx(2.7182818)


def test_no_version_check_where_the_hook_has_copied():
    a = leaf(1.0, 1.0, 1.0)
    t = a * 1
    with G.saved_tensors_hooks(lambda x: x.clone(), lambda x: x):
        s = t * t
    t.add_(1)
    s.sum().backward()
    assert a.grad.tolist() == [2.0, 2.0, 2.0]


def test_second_derivatives_through_packed_tensors():
    a = leaf(0.5)
    with G.saved_tensors_hooks(lambda x: x.detach().clone(), lambda x: x):
        y = (a.exp() * a).sin()
        (g,) = torch.autograd.grad(y, a, create_graph=True)
    (h,) = torch.autograd.grad(g, a)
    # y = sin(a e^a): y'' = cos(u) u'' - sin(u) u'^2 with u = a e^a
    import math

    u, du, ddu = 0.5 * math.exp(0.5), 1.5 * math.exp(0.5), 2.5 * math.exp(0.5)
    assert h.item() == pytest.approx(math.cos(u) * ddu - math.sin(u) * du * du, rel=1e-5)


def test_hooks_apply_to_custom_functions():
    count = []
    a = leaf(1.0, 2.0)
    with G.saved_tensors_hooks(lambda x: (count.append(1), x)[1], lambda x: x):
        y = Exp.apply(a * 1)
    assert len(count) == 2
    assert len(y.grad_fn._raw_saved_tensors) == 3
    y.sum().backward()
    assert torch.allclose(a.grad, a.exp())
    with pytest.raises(RuntimeError, match="second time"):
        y.grad_fn.saved_tensors  # noqa: B018


@pytest.mark.parametrize("answer, error", [(1, TypeError), (torch.ones(2), RuntimeError)])
def test_unpack_must_give_a_fitting_tensor(answer, error):
    a = leaf(1.0, 1.0, 1.0)
    with G.saved_tensors_hooks(lambda x: 1, lambda x: answer):
        q = a.exp()
    with pytest.raises(error):
        q.sum().backward()


def test_pack_must_not_change_the_tensor():
    a = leaf(1.0)
    with pytest.raises(RuntimeError, match="pack hook is modifying its input in place"):
        with G.saved_tensors_hooks(lambda x: x.mul_(2), lambda x: x):
            (a * 1).exp()
    a.exp().backward()  # the thread's hooks are gone again
    assert a.grad.item() == pytest.approx(2.7182818)


def test_hooks_must_be_callable():
    with pytest.raises(TypeError):
        with G.saved_tensors_hooks(1, 2):
            pass


def test_hooks_can_be_forbidden():
    with G.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"):
            with G.saved_tensors_hooks(lambda x: x, lambda x: x):
                pass
    with G.saved_tensors_hooks(lambda x: x, lambda x: x):
        with pytest.raises(RuntimeError, match="nor here"):
            with G.disable_saved_tensors_hooks("nor here"):
                pass


def test_transforms_refuse_hooks():
    with G.saved_tensors_hooks(lambda x: x, lambda x: x):
        with pytest.raises(RuntimeError, match="don't yet support saved tensor hooks"):
            torch.func.grad(lambda x: x.sin().sum())(torch.ones(2))


def test_register_hooks_on_one_saved_tensor():
    a = leaf(2.0)
    z = a * 1
    y = z * z
    assert y.grad_fn._saved_self is z and y.grad_fn._saved_other is z
    log = []
    y.grad_fn._raw_saved_self.register_hooks(lambda x: log.append("pack") or x, lambda x: log.append("unpack") or x)
    with pytest.raises(RuntimeError, match="already been set"):
        y.grad_fn._raw_saved_self.register_hooks(lambda x: x, lambda x: x)
    y.backward()
    assert log == ["pack", "unpack"] and a.grad.item() == 4.0
    with pytest.raises(RuntimeError, match="second time"):
        y.grad_fn._saved_self  # noqa: B018
    with pytest.raises(RuntimeError, match="after it has been freed"):
        y.grad_fn._raw_saved_self.register_hooks(lambda x: x, lambda x: x)
    with pytest.raises(AttributeError):
        y.grad_fn._saved_nothing  # noqa: B018


def test_save_on_cpu():
    a = leaf(1.0, 2.0)
    b = a * 1
    with G.save_on_cpu(pin_memory=True):
        y = b * b
    b.zero_()
    y.sum().backward()
    assert a.grad.tolist() == [2.0, 4.0]


def test_packed_values_are_freed_with_the_graph():
    class Value:
        def __init__(self, tensor):
            self.tensor = tensor

    a = leaf(1.0)
    seen = []

    def pack(x):
        seen.append(Value(x.detach()))
        return seen[-1]

    with G.saved_tensors_hooks(pack, lambda v: v.tensor):
        y = a.exp()
    value = weakref.ref(seen.pop())
    y.backward(retain_graph=True)
    assert value() is not None
    y.backward()
    assert value() is None
    # a cycle through the packed value is Python's to collect
    with G.saved_tensors_hooks(pack, lambda v: v.tensor):
        y = a.exp()
    value = weakref.ref(seen.pop())
    value().back = y
    del y
    gc.collect()
    assert value() is None


def test_a_long_chain_of_packed_tensors_is_freed_without_recursion():
    x = a = leaf(1.0)
    with G.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
        for _ in range(100_000):
            x = x * a
    del x


def test_changes_of_saved_tensors_are_allowed_in_a_block():
    with G.allow_mutation_on_saved_tensors() as ctx:
        a = torch.ones(2, 3, requires_grad=True)
        b = a.clone()
        out = (b**2).sum()
        b.sin_()
        assert (len(ctx.cloned), len(ctx.original)) == (1, 1)
        out.sum().backward()
        assert a.grad.tolist() == [[2.0] * 3] * 2
        b = a.clone()
        view = b[0]
        out = (b * b).sum() + view.exp().sum()
        b.zero_()
        a.grad = None
        out.backward()
        assert torch.allclose(a.grad[1], torch.full((3,), 2.0))
        out = (a.clone() ** 2).sum()
    with pytest.raises(AssertionError, match="outside of the"):
        out.backward()
    with pytest.raises(RuntimeError, match="cannot be nested"):
        with G.allow_mutation_on_saved_tensors(), G.allow_mutation_on_saved_tensors():
            pass


# ---- nodes and edges


def test_nodes():
    a = leaf(1.0)
    b = a * 2
    node = b.grad_fn
    assert node is b.grad_fn and isinstance(node, G.Node) and issubclass(type(node), G.Node)
    assert type(node).__name__ == node.name() == "MulBackward0"
    accumulator, number = node.next_functions[0]
    assert number == 0 and accumulator.variable is a
    assert accumulator.name() == "torch::autograd::AccumulateGrad" and repr(accumulator).startswith("<AccumulateGrad")
    assert accumulator._sequence_nr() == 2**64 - 1 and node._sequence_nr() < b.exp().grad_fn._sequence_nr()
    node.metadata["k"] = 1
    del node
    gc.collect()
    assert b.grad_fn.metadata == {"k": 1}
    with pytest.raises(TypeError):
        type(b.grad_fn)()
    y = Exp.apply(a)
    assert isinstance(y.grad_fn, G.Node) and y.grad_fn.name() == "ExpBackward"
    y.grad_fn.metadata["k"] = 2
    assert y.grad_fn.metadata == {"k": 2} and y.grad_fn.next_functions[0][0] is accumulator


def test_metadata_in_a_cycle_is_collected():
    a = leaf(1.0)
    b = a * 2

    class Note:
        pass

    note = Note()
    note.tensor = b
    b.grad_fn.metadata["note"] = note
    gone = weakref.ref(note)
    del b, note
    gc.collect()
    assert gone() is None


def test_backward_and_grad_take_edges():
    a = leaf(1.0, 1.0, 1.0)
    b = a * 2
    edge = G.get_gradient_edge(b)
    assert edge.node is b.grad_fn and edge.output_nr == 0
    assert torch.autograd.grad((b * 3).sum(), edge)[0].tolist() == [3.0] * 3
    c = G.get_gradient_edge(b * 3)
    assert torch.autograd.grad(c, G.get_gradient_edge(a), torch.ones(3))[0].tolist() == [6.0] * 3
    torch.autograd.backward(G.get_gradient_edge(((a * 2) * 3).sum()))
    assert a.grad.tolist() == [6.0] * 3
    torch.autograd.backward((a * 2).sum(), inputs=[G.get_gradient_edge(a)])
    assert a.grad.tolist() == [8.0] * 3
    b = a * 2
    torch.autograd.backward((b * 2).sum(), inputs=[G.get_gradient_edge(b)])
    assert a.grad.tolist() == [8.0] * 3
    y = Exp.apply(a)
    edge = G.get_gradient_edge(y)
    del y
    assert torch.autograd.grad(edge, a, torch.ones(3))[0].tolist() == pytest.approx([2.7182818] * 3)


def test_edges_that_cannot_be():
    a = leaf(1.0, 1.0)
    with pytest.raises(RuntimeError, match="not require gradients"):
        G.get_gradient_edge(torch.ones(2))
    edge = G.get_gradient_edge(a * 2)
    with pytest.raises(RuntimeError, match="scalar outputs"):
        torch.autograd.backward(edge)
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        torch.autograd.backward(edge, torch.ones(3))
    with pytest.raises(RuntimeError, match="cannot be empty"):
        torch.autograd.grad(a.sum(), ())


def test_increment_version():
    a = leaf(1.0)
    b = a * 1
    y = b * b
    G.increment_version([b, torch.ones(1)])
    assert b._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


# ---- hooks on gradients


def test_order_of_hooks():
    a, log = leaf(1.0, 1.0), []
    b = a * 2
    b.register_hook(lambda g: log.append("tensor 1"))
    b.retain_grad()
    b.register_hook(lambda g: log.append(("tensor 2", b.grad)))
    b.grad_fn.register_prehook(lambda g: (log.append(("pre", b.grad.tolist())), (g[0] * 10,))[1])
    b.grad_fn.register_hook(lambda i, o: log.append(("post", i[0].tolist(), o[0].tolist())))
    a.register_hook(lambda g: log.append("leaf"))
    a.register_post_accumulate_grad_hook(lambda p: log.append(("accumulated", p.grad.tolist())))
    accumulator = b.grad_fn.next_functions[0][0]
    accumulator.register_prehook(lambda g: log.append("accumulator, pre"))
    accumulator.register_hook(lambda i, o: log.append(("accumulator, post", len(i), len(o))))
    (b * 1).sum().backward()
    assert log == [
        "tensor 1", ("tensor 2", None), ("pre", [1.0, 1.0]), ("post", [20.0, 20.0], [10.0, 10.0]), "leaf",
        "accumulator, pre", ("accumulated", [20.0, 20.0]), ("accumulator, post", 0, 1),
    ]  # fmt: skip
    assert b.grad.tolist() == [1.0, 1.0]


def test_grad_sees_tensor_hooks_and_not_prehooks():
    a = leaf(1.0)
    b = a * 2
    b.register_hook(lambda g: g * 2)
    b.grad_fn.register_prehook(lambda g: (g[0] * 10,))
    assert torch.autograd.grad(b * 1, b)[0].item() == 2.0


@pytest.mark.parametrize("kind", ["leaf", "tensor", "pre", "post", "accumulated"])
def test_a_hook_removed_by_another_still_runs_once(kind):
    a, log, handles = leaf(1.0), [], []
    b = a * 2
    register = {
        "leaf": a.register_hook, "tensor": b.register_hook, "pre": b.grad_fn.register_prehook,
        "post": b.grad_fn.register_hook, "accumulated": a.register_post_accumulate_grad_hook,
    }[kind]  # fmt: skip

    def first(*_):
        log.append(1)
        handles[0].remove()

    register(first)
    handles.append(register(lambda *_: log.append(2)))
    (b * 2).backward()
    assert log == [1, 2]


def test_retained_gradient_is_that_of_the_value_after_a_write():
    a = leaf(1.0, 1.0)
    b = a * 2
    b.retain_grad()
    b.mul_(5)
    b.sum().backward()
    assert b.grad.tolist() == [1.0, 1.0] and a.grad.tolist() == [10.0, 10.0]


def test_hooks_of_the_value_before_a_write_see_its_gradient():
    a, log = leaf(1.0), []
    b = a * 2
    b.register_hook(lambda g: log.append(("old", g.item())))
    b.mul_(3)
    b.register_hook(lambda g: log.append(("new", g.item())))
    b.backward()
    assert log == [("new", 1.0), ("old", 3.0)]


def test_hooks_that_fail_leave_the_engine_usable():
    p = leaf(1.0, 1.0)

    def bad(g):
        raise KeyError("mine")

    for register in (p.register_hook, p.register_post_accumulate_grad_hook):
        handle = register(bad)
        with pytest.raises(KeyError, match="mine"):
            (p * 2).sum().backward()
        handle.remove()
    p.grad = None
    (p * 2).sum().backward()
    assert p.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    "answer, error, text",
    [
        (lambda g: g[0], RuntimeError, "changed the size of value"),
        (lambda g: g.double(), RuntimeError, "changed the type of value"),
        (lambda g: 3, TypeError, "hook returned 'int'"),
    ],
)
def test_answers_that_do_not_fit(answer, error, text):
    p = leaf(1.0, 1.0)
    p.register_hook(answer)
    with pytest.raises(error, match=text):
        (p * 2).sum().backward()


def test_answers_of_node_hooks_that_do_not_fit():
    p = leaf(1.0, 1.0)
    for answer, error, text in [(lambda g: 3, TypeError, "expected tuple"), (lambda g: (g[0], g[0]), RuntimeError, "got 2")]:
        b = p * 2
        b.grad_fn.register_prehook(answer)
        with pytest.raises(error, match=text):
            b.sum().backward()


def test_a_hook_may_put_the_gradient_elsewhere():
    p, kept = leaf(1.0, 1.0), []

    def step(p):
        kept.append(p.grad)
        p.grad = None

    p.register_post_accumulate_grad_hook(step)
    (p * 2).sum().backward()
    (p * 3).sum().backward()
    assert p.grad is None and [g.tolist() for g in kept] == [[2.0, 2.0], [3.0, 3.0]]


def test_backward_inside_a_hook():
    q, w = leaf(1.0), leaf(3.0)

    def inner(g):
        with torch.enable_grad():
            (w * w).backward()

    q.register_hook(inner)
    (q * 2).backward()
    assert (w.grad.item(), q.grad.item()) == (6.0, 2.0)


def test_multi_grad_hook_all():
    x, y, z, log = leaf(1.0), leaf(1.0), leaf(1.0), []
    handle = G.register_multi_grad_hook((x, y, z), lambda gs: log.append([g is None for g in gs]))
    (x * y).backward()
    (x * y * z).backward()
    assert log == [[False, False, True], [False] * 3]
    torch.autograd.grad(x * y * z, (x, z))
    assert log[2:] == [[False, True, False]]
    handle.remove()
    (x * y).backward()
    assert len(log) == 3


def test_multi_grad_hook_any_and_edges():
    x, y, log = leaf(1.0), leaf(1.0), []
    with G.register_multi_grad_hook((x, y), lambda g: log.append(g.item()), mode="any"):
        (x * y).backward()
        (x * y).backward()
    assert log == [1.0, 1.0]
    b = x * 2
    G.register_multi_grad_hook((G.get_gradient_edge(b), y), lambda gs: log.append([g.item() for g in gs]))
    (b * y).backward()
    assert log[2:] == [[1.0, 2.0]]
    with pytest.raises(ValueError, match="mode"):
        G.register_multi_grad_hook((x,), print, mode="some")


def test_queue_callback():
    log, x = [], leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: G.queue_callback(lambda: log.append(x.grad.item())))
    y.backward()
    assert log == [2.0]
    with pytest.raises(RuntimeError, match="during backward"):
        G.queue_callback(print)


# ---- depth, threads, memory


def test_a_chain_of_a_million_steps():
    x = a = leaf(1.0)
    for _ in range(1_000_000):
        x = x + 1.0
    x.backward()
    assert a.grad.item() == 1.0
    del x


def test_threads_share_leaves():
    w = torch.ones(64, requires_grad=True)
    errors = []

    def work():
        try:
            for _ in range(200):
                (w * 2).sum().backward()
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert w.grad.tolist() == [1600.0] * 64


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def network_step(net, x, y):
    loss = ((net(x) - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for p in net.parameters():
            p -= 0.01 * p.grad
            p.grad = None


def checkpoint_step(net, x, y):
    from flambeau.utils.checkpoint import checkpoint

    checkpoint(net, x, use_reentrant=False).sum().backward()
    for p in net.parameters():
        p.grad = None


@pytest.mark.parametrize("step, count", [(network_step, 10_000), (checkpoint_step, 2_000)])
def test_memory_stays_flat(step, count):
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    x, y = torch.ones(4, 8), torch.ones(4, 1)
    for _ in range(500):
        step(net, x, y)
    gc.collect()
    before = resident()
    for _ in range(count):
        step(net, x, y)
    gc.collect()
    assert resident() - before < 1 << 20
