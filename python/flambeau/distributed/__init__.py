"""Process groups. A group of one process works as any other; larger ones are refused until flambeau has them.

>>> import flambeau.distributed as dist
>>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
>>> dist.get_rank(), dist.get_world_size()
(0, 1)
>>> dist.destroy_process_group()
"""

from .collectives import (
    P2POp,
    Work,
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_object,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    batch_isend_irecv,
    broadcast,
    broadcast_object_list,
    gather,
    gather_object,
    irecv,
    isend,
    monitored_barrier,
    recv,
    recv_object_list,
    reduce,
    reduce_op,
    reduce_scatter,
    reduce_scatter_tensor,
    ReduceOp,
    scatter,
    scatter_object_list,
    send,
    send_object_list,
)
from .groups import (
    Backend,
    GroupMember,
    ProcessGroup,
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
    new_group,
    new_subgroups,
)
from .stores import FileStore, HashStore, PrefixStore, Store, TCPStore, default_pg_timeout

__all__ = [
    "Backend", "FileStore", "GroupMember", "HashStore", "P2POp", "PrefixStore", "ProcessGroup", "ReduceOp", "Store",
    "TCPStore", "Work", "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object",
    "all_reduce", "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv",
    "broadcast", "broadcast_object_list", "default_pg_timeout", "destroy_process_group", "gather", "gather_object",
    "get_backend", "get_backend_config", "get_default_backend_for_device", "get_global_rank", "get_group_rank",
    "get_node_local_rank", "get_pg_count", "get_process_group_ranks", "get_rank", "get_world_size", "group",
    "init_process_group", "irecv", "is_available", "is_backend_available", "is_gloo_available", "is_initialized",
    "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", "is_ucc_available", "is_xccl_available",
    "isend", "monitored_barrier", "new_group", "new_subgroups", "recv", "recv_object_list", "reduce", "reduce_op",
    "reduce_scatter", "reduce_scatter_tensor", "scatter", "scatter_object_list", "send", "send_object_list",
]  # fmt: skip

_all_gather_base = all_gather_into_tensor
_reduce_scatter_base = reduce_scatter_tensor


def __getattr__(name):
    if name in ("distributed_c10d", "algorithms", "nn", "utils"):
        from importlib import import_module

        try:
            return import_module("." + name, __name__)
        except ModuleNotFoundError:
            pass
    raise AttributeError(f"flambeau has no 'distributed.{name}' yet")
