"""What the processes of a group do together. In a group of one, sums are their only term and copies go to oneself."""

import pickle

from .groups import _member

__all__ = [
    "P2POp", "ReduceOp", "Work", "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object",
    "all_reduce", "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv",
    "broadcast", "broadcast_object_list", "gather", "gather_object", "irecv", "isend", "monitored_barrier", "recv",
    "recv_object_list", "reduce", "reduce_op", "reduce_scatter", "reduce_scatter_tensor", "scatter",
    "scatter_object_list", "send", "send_object_list",
]  # fmt: skip


class _Op(str):
    """The name of a way to combine."""

    __slots__ = ()

    def __repr__(self):
        return f"<RedOpType.{self}: {list(_OPS).index(str(self))}>"


_OPS = {name: _Op(name) for name in ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM")}


class ReduceOp:
    """Ways to combine what the processes have: ``ReduceOp.SUM`` and its kin."""

    RedOpType = _Op
    SUM, AVG, PRODUCT, MIN, MAX = (_OPS[name] for name in ("SUM", "AVG", "PRODUCT", "MIN", "MAX"))
    BAND, BOR, BXOR, PREMUL_SUM = (_OPS[name] for name in ("BAND", "BOR", "BXOR", "PREMUL_SUM"))

    def __new__(cls, op):
        return _OPS[op]


reduce_op = ReduceOp


class Work:
    """A handle on a collective: done already."""

    def __init__(self, result=()):
        self._result = list(result)

    def wait(self, timeout=None):
        """Wait until it is done: it is."""
        return True

    def is_completed(self):
        """Whether it is done."""
        return True

    def is_success(self):
        """Whether it went well."""
        return True

    def exception(self):
        """What went wrong: nothing."""
        return None

    def result(self):
        """The tensors that came of it."""
        return self._result

    def get_future(self):
        """A future of its result."""
        from ..futures import Future

        future = Future()
        future.set_result(self._result)
        return future


def _done(group, async_op, result=()):
    """What a collective returns."""
    return Work(result) if async_op and _member(group) else None


def _tensor(name, value):
    from .. import Tensor

    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor, but got {type(value)} instead."
        )
    return value


def _tensors(name, values):
    if not isinstance(values, (list, tuple)):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor], but got {type(values)} instead."
        )
    for value in values:
        _tensor(name, value)
    return values


def _self_only(what, rank):
    if rank not in (0, None):
        raise ValueError(f"{what}: rank {rank} is not in the group, which has 1 process")


def _one(what, name, values):
    """The only element of a list that has one for each process."""
    if len(values) != 1:
        raise ValueError(f"{what}: `{name}` needs one element for each of the 1 processes, got {len(values)}")
    return values[0]


def _copy(target, source):
    from .. import no_grad

    with no_grad():
        target.copy_(source if source.shape == target.shape else source.reshape(target.shape))


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """Combine ``tensor`` over the processes, in place on each."""
    _tensor("tensor", tensor)
    _member(group)
    return _done(group, async_op, [tensor])


def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op=False):
    """``all_reduce`` of several tensors."""
    _member(group)
    return _done(group, async_op, [tensors] if not isinstance(tensors, (list, tuple)) else tensors)


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    """Combine ``tensor`` over the processes, in place on process ``dst``."""
    _tensor("tensor", tensor)
    _member(group)
    _self_only("reduce", dst if dst is not None else group_dst)
    return _done(group, async_op, [tensor])


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    """Give all processes what ``src`` has in ``tensor``."""
    _tensor("tensor", tensor)
    _member(group)
    _self_only("broadcast", src if src is not None else group_src)
    return _done(group, async_op, [tensor])


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """Put what each process has in ``tensor`` into the list."""
    _member(group)
    _copy(_one("all_gather", "tensor_list", _tensors("tensor_list", tensor_list)), _tensor("tensor", tensor))
    return _done(group, async_op, tensor_list)


def all_gather_coalesced(output_tensor_lists, input_tensor_list, group=None, async_op=False):
    """``all_gather`` of several tensors."""
    for outputs, tensor in zip(output_tensor_lists, input_tensor_list, strict=True):
        all_gather(outputs, tensor, group)
    return _done(group, async_op)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """Put what each process has into one tensor, joined or stacked."""
    _member(group)
    _copy(_tensor("output_tensor", output_tensor), _tensor("input_tensor", input_tensor))
    return _done(group, async_op, [output_tensor])


def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    """Put what each process has into the list of process ``dst``."""
    _member(group)
    _self_only("gather", dst if dst is not None else group_dst)
    if not gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    return all_gather(gather_list, tensor, group, async_op)


def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    """Give each process its element of the list that ``src`` has."""
    _member(group)
    _self_only("scatter", src if src is not None else group_src)
    if not scatter_list:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    _copy(_tensor("tensor", tensor), _one("scatter", "scatter_list", _tensors("scatter_list", scatter_list)))
    return _done(group, async_op, [tensor])


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """Combine lists over the processes; each keeps its element."""
    _member(group)
    _copy(_tensor("output", output), _one("reduce_scatter", "input_list", _tensors("input_list", input_list)))
    return _done(group, async_op, [output])


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """``reduce_scatter`` of one tensor, cut into as many parts as there are processes."""
    return all_gather_into_tensor(output, input, group, async_op)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """Each process sends an element of its list to each."""
    _member(group)
    _copy(
        _one("all_to_all", "output_tensor_list", output_tensor_list),
        _one("all_to_all", "input_tensor_list", input_tensor_list),
    )
    return _done(group, async_op, output_tensor_list)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False):
    """Each process sends a part of its tensor to each."""
    return all_gather_into_tensor(output, input, group, async_op)


def barrier(group=None, async_op=False, device_ids=None):
    """Wait until all processes are here."""
    _member(group)
    return _done(group, async_op)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """``barrier`` that names who is missing."""
    _member(group)


def _again(obj):
    """What another process would get of an object."""
    return pickle.loads(pickle.dumps(obj))


def all_gather_object(object_list, obj, group=None):
    """``all_gather`` of any objects that can be pickled."""
    _member(group)
    object_list[0] = _again(obj)


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
    """``gather`` of any objects that can be pickled."""
    _member(group)
    _self_only("gather_object", dst if dst is not None else group_dst)
    if not object_gather_list:
        raise ValueError("Argument ``object_gather_list`` must be specified on destination rank.")
    object_gather_list[0] = _again(obj)


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None, weights_only=None):
    """``broadcast`` of any objects that can be pickled."""
    _member(group)
    _self_only("broadcast_object_list", src if src is not None else group_src)
    object_list[:] = [_again(obj) for obj in object_list]


def scatter_object_list(
    scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, group_src=None, weights_only=None
):
    """``scatter`` of any objects that can be pickled."""
    _member(group)
    scatter_object_output_list[0] = _again(
        _one("scatter_object_list", "scatter_object_input_list", scatter_object_input_list)
    )


def _no_peer(what, kind):
    def refuse(*args, **kwargs):
        _member(kwargs.get("group"))
        raise ValueError(f"{what}: Invalid {kind} rank: the group has 1 process, and none sends to itself.")

    refuse.__name__ = refuse.__qualname__ = what
    refuse.__doc__ = "Between two processes; there is one."
    return refuse


send, isend = _no_peer("send", "destination"), _no_peer("isend", "destination")
recv, irecv = _no_peer("recv", "source"), _no_peer("irecv", "source")
send_object_list, recv_object_list = _no_peer("send_object_list", "destination"), _no_peer("recv_object_list", "source")


class P2POp:
    """One of several messages that ``batch_isend_irecv`` exchanges."""

    def __init__(self, op, tensor, peer=None, group=None, tag=0, group_peer=None):
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag


def batch_isend_irecv(p2p_op_list, **_):
    """Exchange messages, all at once."""
    return [p.op(p.tensor, p.peer, group=p.group, tag=p.tag) for p in p2p_op_list]
