"""The default process group, and others of the same one process."""

import os

from .stores import HashStore, Store, _one_process

__all__ = [
    "Backend", "GroupMember", "ProcessGroup", "destroy_process_group", "get_backend", "get_backend_config",
    "get_default_backend_for_device", "get_global_rank", "get_group_rank", "get_node_local_rank", "get_pg_count",
    "get_process_group_ranks", "get_rank", "get_world_size", "group", "init_process_group", "is_available",
    "is_backend_available", "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
    "is_torchelastic_launched", "is_ucc_available", "is_xccl_available", "new_group", "new_subgroups",
]  # fmt: skip


class Backend(str):
    """The name of a backend, in lower case."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, FAKE = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl", "fake"
    backend_list = ["undefined", "gloo", "nccl", "xccl", "ucc", "mpi"]

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, but got {name!r}")
        return super().__new__(cls, name.lower())


class ProcessGroup:
    """One process."""

    def __init__(self, backend, name="default_pg", store=None, description="default_pg"):
        self._backend, self.group_name, self.group_desc, self._store = backend, name, description, store

    def rank(self):
        """This process's number: 0."""
        return 0

    def size(self):
        """How many processes there are: 1."""
        return 1

    def name(self):
        """The backend's name."""
        return self._backend

    def barrier(self, *_):
        """Wait for the others."""
        from .collectives import Work

        return Work()

    def __repr__(self):
        return f"<flambeau.distributed.ProcessGroup {self.group_name} of 1 process>"


class _WorldMeta(type):
    @property
    def WORLD(cls):
        return _default

    @WORLD.setter
    def WORLD(cls, value):
        global _default
        _default = value


class group(metaclass=_WorldMeta):
    """``group.WORLD`` is the default group, or None."""


class GroupMember(metaclass=_WorldMeta):
    """``GroupMember.WORLD`` is the default group; a process that is in none of the ranks gets NON_GROUP_MEMBER."""

    NON_GROUP_MEMBER = -100


_default = None
_groups = {}  # by id: the ranks of each
_count = 0


def is_available():
    """Whether the module works: it does, with one process."""
    return True


def is_initialized():
    """Whether the default group was made."""
    return _default is not None


def is_gloo_available():
    """Whether the CPU's backend is there; with one process nothing needs to be sent."""
    return True


def is_nccl_available():
    """Whether NCCL is there."""
    return False


is_mpi_available = is_ucc_available = is_xccl_available = is_nccl_available


def is_backend_available(backend):
    """Whether a backend is there, by its name."""
    return backend.lower() == "gloo"


def is_torchelastic_launched():
    """Whether a launcher started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def get_default_backend_for_device(device):
    """The backend for a type of device."""
    return "gloo"


def _from_environment(name, given):
    if given >= 0:
        return given
    value = os.environ.get(name)
    if value is None:
        raise ValueError(
            f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, but not set"
        )
    return int(value)


def init_process_group(
    backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None, group_name="", pg_options=None,
    device_id=None, _ranks=None,
):  # fmt: skip
    """Make the default group. Rank and world size may come from the environment (RANK, WORLD_SIZE).

    ``NotImplementedError`` for more than one process, and for backends of devices that are not here.
    """
    global _default
    if _default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if store is not None and (world_size < 1 or rank < 0):
        raise AssertionError("world_size must be positive and rank non-negative if using store")
    if store is None and (init_method is None or init_method.startswith("env://")):
        rank, world_size = _from_environment("RANK", rank), _from_environment("WORLD_SIZE", world_size)
    elif store is None:
        if world_size < 1:
            raise ValueError(f"init_process_group: {init_method} needs a world_size, got {world_size}")
        if rank < 0:
            raise ValueError(f"init_process_group: {init_method} needs a rank, got {rank}")
    _one_process("init_process_group", world_size)
    if rank >= world_size:
        raise ValueError(f"init_process_group: rank {rank} is not below world_size {world_size}")
    _default = ProcessGroup(_usable_backend(backend), store=store if isinstance(store, Store) else HashStore())
    _groups[id(_default)] = [0]


def _usable_backend(backend):
    """The backend to use: what is named for the CPU."""
    names = [part.split(":") for part in (backend or "gloo").lower().split(",")]
    for name in names:
        if len(name) == 1 or name[0] == "cpu":
            if name[-1] not in ("gloo", "undefined", "fake"):
                raise RuntimeError(
                    f"init_process_group: Distributed package doesn't have {name[-1].upper()} built in: flambeau has 'gloo'"
                )
            return name[-1]
    return "gloo"


def destroy_process_group(group=None):
    """Give up a group: the default one, and all with it, unless another is named."""
    global _default
    if group is not None and group is not _default:
        _groups.pop(id(group), None)
        return
    if _default is None:
        raise AssertionError("Process group cannot be None")
    _default = None
    _groups.clear()


def _get_default_group():
    if _default is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return _default


def _member(group):
    """Whether this process is in a group; an error where there is none."""
    if group is None:
        _get_default_group()
        return True
    return group != GroupMember.NON_GROUP_MEMBER


def get_rank(group=None):
    """This process's number in a group; -1 where it is not in it."""
    return 0 if _member(group) else -1


def get_world_size(group=None):
    """How many processes a group has; -1 where this one is not in it."""
    return 1 if _member(group) else -1


def get_node_local_rank(fallback_rank=None):
    """This process's number on its machine, as a launcher told it."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work"
    )


def get_backend(group=None):
    """The name of a group's backend."""
    group = _get_default_group() if group is None else group
    if group == GroupMember.NON_GROUP_MEMBER:
        raise ValueError("Invalid process group specified")
    return Backend(group.name())


def get_backend_config(group=None):
    """Backends by type of device."""
    return f"cpu:{get_backend(group)}"


def get_process_group_ranks(group=None):
    """The numbers of a group's processes among all."""
    return list(_groups.get(id(group or _get_default_group()), [0]))


def get_group_rank(group, global_rank):
    """A process's number in a group, from its number among all."""
    if global_rank != 0:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return 0


def get_global_rank(group, group_rank):
    """A process's number among all, from its number in a group."""
    if group_rank != 0:
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return 0


def get_pg_count():
    """How many groups there are."""
    return len(_groups)


def new_group(
    ranks=None, timeout=None, backend=None, pg_options=None, use_local_synchronization=False, group_desc=None,
    device_id=None,
):  # fmt: skip
    """A group of some of the processes; one that this process is not in is ``GroupMember.NON_GROUP_MEMBER``."""
    global _count
    default = _get_default_group()
    ranks = [0] if ranks is None else sorted(ranks)
    for rank in ranks:
        if not 0 <= rank < 1:
            raise ValueError(
                f"The new group's rank should be within the world_size set by init_process_group, got {rank}"
            )
    if not ranks:
        return GroupMember.NON_GROUP_MEMBER
    _count += 1
    made = ProcessGroup(
        _usable_backend(backend or default.name()), str(_count), default._store, group_desc or "undefined"
    )
    _groups[id(made)] = ranks
    return made


def new_subgroups(group_size=None, group=None, timeout=None, backend=None, pg_options=None, group_desc=None):
    """Groups of ``group_size`` processes each: the one that this process is in, and all."""
    if group_size not in (None, 1):
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size (1)")
    made = new_group([0], backend=backend, group_desc=group_desc)
    return made, [made]
