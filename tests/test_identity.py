"""The same tensor is the same Python object; cycles through the graph are collected."""

import copy
import gc
import pickle
import threading
import weakref

import flambeau as torch
import pytest
from flambeau.autograd import Function
from flambeau.nn import Parameter


def leaf(*values):
    return torch.tensor([float(v) for v in values], requires_grad=True)


def test_grad_is_one_object_and_keeps_attributes():
    x = leaf(1, 2)
    (x * x).backward(torch.tensor([1.0, 1.0]))
    assert x.grad is x.grad
    x.grad.note = "kept"
    gc.collect()
    assert x.grad.note == "kept"


def test_object_lives_as_long_as_its_tensor():
    x = leaf(1, 2)
    y = x * 3
    y.label = "inner"
    z = y * y  # saves y
    del y
    gc.collect()
    seen = []
    z.grad_fn.next_functions[0][0].register_prehook(lambda grads: seen.append(grads[0].shape))
    z.backward(torch.tensor([1.0, 1.0]))
    assert seen == [torch.Size([2])]
    assert x.grad.tolist() == [18.0, 36.0]


def test_subclass_survives_in_the_graph():
    class Special(torch.Tensor):
        pass

    base = leaf(1, 2).as_subclass(Special)
    base.requires_grad_()
    base.tag = 7
    x = base * 2
    del base
    gc.collect()
    variable = x.grad_fn.next_functions[0][0].variable
    assert type(variable) is Special and variable.tag == 7


def test_base_is_one_object():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    y = x.transpose(0, 1)
    assert y._base is x
    x.note = 1
    del x
    gc.collect()
    assert y._base.note == 1


def test_grad_fn_is_one_object_while_it_lives():
    y = leaf(1) * 2
    node = y.grad_fn
    node.metadata["mine"] = 1
    assert y.grad_fn is node and y.grad_fn.metadata == {"mine": 1}


def test_class_assignment():
    class Other(torch.Tensor):
        def hello(self):
            return "hello"

    x = torch.tensor([1.0])
    x.__class__ = Other
    assert x.hello() == "hello"
    y = x.neg()
    assert type(y) is torch.Tensor


def test_parameter_class():
    p = Parameter(torch.tensor([1.0, 2.0]))
    assert isinstance(p, torch.Tensor) and p.requires_grad and p.is_leaf
    assert type(p * 1) is torch.Tensor


class Keep(Function):
    """Keeps its input and whatever it is told on the context."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.neg()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x * 0 - grad


class Thing:
    """Something to which weak references can be had."""


def test_ten_thousand_cycles_are_collected():
    """The test that the design names: tensor -> grad_fn -> ctx -> tensor, with attributes on the way."""
    gc.collect()
    things = weakref.WeakSet()
    x = leaf(1, 2)
    for _ in range(10_000):
        y = Keep.apply(x)
        thing = Thing()
        things.add(thing)
        y.thing = thing
        y.grad_fn.result = y
        y.grad_fn.thing = thing
    del y, thing
    gc.collect()
    assert len(things) == 0
    assert x.grad is None


def test_cycles_that_are_in_use_are_kept():
    kept = []
    for i in range(100):
        y = Keep.apply(leaf(1))
        y.number = i
        y.grad_fn.result = y
        kept.append(y.grad_fn)
    del y
    gc.collect()
    assert [node.result.number for node in kept] == list(range(100))
    kept[3].result.backward()


def collected(make):
    """Whether what ``make`` returns a weak reference to goes away."""
    gc.collect()
    reference = make()
    gc.collect()
    return reference() is None


def test_cycle_through_own_attribute():
    def make():
        x = torch.tensor([1.0])
        x.myself = x
        return weakref.ref(x)

    assert collected(make)


def test_cycle_through_hook_closure():
    def make():
        x = leaf(1)
        x.register_hook(lambda grad: x.note)
        return weakref.ref(x)

    assert collected(make)

    def make():
        y = leaf(1) * 2
        y.register_hook(lambda grad: y.note)
        return weakref.ref(y)

    assert collected(make)


def test_cycle_through_post_accumulate_hook():
    def make():
        x = leaf(1)
        x.register_post_accumulate_grad_hook(lambda t: x.note)
        return weakref.ref(x)

    assert collected(make)


def test_cycle_through_node_hook():
    def make():
        y = leaf(1) * 2
        y.grad_fn.register_hook(lambda made, given: y.note)
        return weakref.ref(y)

    assert collected(make)


def test_cycle_through_grad():
    def make():
        x = leaf(1)
        x.grad = torch.tensor([1.0])
        x.grad.owner = x
        return weakref.ref(x)

    assert collected(make)


def test_cycle_through_a_leaf_of_the_graph():
    def make():
        x = leaf(1)
        y = (x * 2).neg()
        x.result = y
        return weakref.ref(y)

    assert collected(make)


def test_cycle_through_saved_tensor():
    def make():
        x = leaf(1)
        y = x * x
        x.result = y
        return weakref.ref(y)

    assert collected(make)


def test_cycle_through_view_base():
    def make():
        x = torch.tensor([[1.0, 2.0]])
        y = x.transpose(0, 1)
        x.view_of_me = y
        return weakref.ref(y)

    assert collected(make)


def test_weak_references_die_without_the_collector():
    gc.collect()
    gc.disable()
    try:
        x = torch.tensor([1.0])
        reference = weakref.ref(x)
        del x
        assert reference() is None
        x = leaf(1)
        y = x * x
        reference = weakref.ref(x)
        del x
        assert reference() is not None  # the graph has it
        del y
        assert reference() is None
    finally:
        gc.enable()


def test_objects_do_not_pile_up():
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(1000):
        x = leaf(1, 2)
        y = (x * x).neg()
        y.backward(torch.tensor([1.0, 1.0]))
    del x, y
    gc.collect()
    assert len(gc.get_objects()) - before < 50


def test_deepcopy():
    x = leaf(1, 2)
    x.note = ["a"]
    y = copy.deepcopy(x)
    assert y is not x and y.tolist() == [1.0, 2.0] and y.requires_grad and y.note == ["a"] and y.note is not x.note
    pair = copy.deepcopy([x, x])
    assert pair[0] is pair[1]
    with pytest.raises(RuntimeError, match="deepcopy"):
        copy.deepcopy(x * 2)


def test_pickle():
    x = leaf(1, 2)
    y = pickle.loads(pickle.dumps(x))
    assert type(y) is torch.Tensor and y.tolist() == [1.0, 2.0] and y.requires_grad
    y.note = 3
    z = pickle.loads(pickle.dumps(y))
    assert z.note == 3
    p = pickle.loads(pickle.dumps(Parameter(torch.tensor([1.0]))))
    assert type(p) is Parameter and p.requires_grad
    for constant in (torch.float32, torch.strided, torch.channels_last, torch.device("cpu"), torch.Size([2, 3])):
        assert pickle.loads(pickle.dumps(constant)) == constant
    assert pickle.loads(pickle.dumps(torch.bfloat16)) is torch.bfloat16


def test_threads():
    errors = []
    shared = leaf(*range(16))

    def work():
        try:
            for _ in range(200):
                y = (shared * shared).neg()
                y.mark = 1
                z = y * y
                del y
                z.backward(torch.tensor([1.0] * 16))
        except BaseException as error:  # noqa: BLE001  reported by the test
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for _ in range(20):
        gc.collect()
    for t in threads:
        t.join()
    assert not errors
    # Whole numbers below 2**24: no rounding.
    assert shared.grad.tolist() == [4.0 * i**3 * 800 for i in range(16)]


def test_large_work_in_threads_with_changing_metadata():
    """Work without the GIL must not see a tensor change its memory meanwhile."""
    n = 1 << 17
    x = torch.tensor([1.0] * n)
    small, big = torch.tensor([2.0]), torch.tensor([3.0] * n)
    stop = threading.Event()

    def change():
        while not stop.is_set():
            x.data = small
            x.data = big

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(200):
            y = x.exp()
            assert y.numel() in (1, n)
    finally:
        stop.set()
        thread.join()
