"""What programs touch at import or switch off: it is there, answers truly, and refuses where it cannot do what it says."""

import os
import struct
import warnings

import pytest

import flambeau as torch
import flambeau.distributed as dist
from flambeau import nn


@pytest.fixture
def group():
    dist.init_process_group("gloo", init_method="tcp://localhost:29500", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_groups_of_one(group):
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "gloo")
    t = torch.tensor([1.0, 2.0])
    dist.all_reduce(t, op=dist.ReduceOp.SUM)
    dist.broadcast(t, 0)
    dist.barrier()
    out = [torch.zeros(2)]
    assert dist.all_gather(out, t, async_op=True).wait()
    assert out[0].tolist() == [1, 2]
    flat = torch.zeros(1, 2)
    dist.all_gather_into_tensor(flat, t)
    assert flat.tolist() == [[1, 2]]
    objects = [None]
    dist.all_gather_object(objects, {"a": 1})
    assert objects == [{"a": 1}]
    assert dist.get_world_size(dist.new_group([0])) == 1
    with pytest.raises(ValueError, match="within the world_size"):
        dist.new_group([0, 1])
    with pytest.raises(ValueError, match="Invalid destination rank"):
        dist.send(t, 0)
    with pytest.raises(ValueError, match="twice"):
        dist.init_process_group("gloo", rank=0, world_size=1, init_method="tcp://localhost:1")


def test_without_a_group():
    assert dist.is_available() and not dist.is_initialized()
    for call in (dist.get_rank, dist.get_world_size, dist.barrier, lambda: dist.all_reduce(torch.ones(1))):
        with pytest.raises(ValueError, match="has not been initialized"):
            call()
    with pytest.raises(ValueError, match="environment variable RANK expected"):
        dist.init_process_group("gloo")
    with pytest.raises(NotImplementedError, match="several processes yet, got world_size=2"):
        dist.init_process_group("gloo", rank=0, world_size=2, init_method="tcp://localhost:1")
    with pytest.raises(RuntimeError, match="NCCL"):
        dist.init_process_group("nccl", rank=0, world_size=1, init_method="tcp://localhost:1")
    assert not dist.is_initialized()


def test_distributed_data_parallel(group):
    model = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
    assert list(model.state_dict()) == ["module.weight", "module.bias"]
    with model.no_sync():
        model(torch.ones(1, 2)).sum().backward()
    assert model.module.weight.grad.tolist() == [[1, 1], [1, 1]]
    with pytest.raises(RuntimeError, match="not needed when a module doesn't have any parameters"):
        nn.parallel.DistributedDataParallel(nn.ReLU())
    wrapped = nn.DataParallel(nn.Linear(2, 2))
    assert wrapped(torch.ones(1, 2)).shape == (1, 2)


def test_distributed_sampler():
    # Indices as PyTorch 2.15 gives them for 10 elements, 3 processes, seed 5, epoch 2.
    def indices(**settings):
        out = []
        for rank in range(3):
            sampler = torch.utils.data.DistributedSampler(range(10), 3, rank, seed=5, **settings)
            sampler.set_epoch(2)
            out.append(list(sampler))
        return out

    assert indices(shuffle=False) == [[0, 3, 6, 9], [1, 4, 7, 0], [2, 5, 8, 1]]
    assert indices(shuffle=False, drop_last=True) == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    assert indices() == DISTRIBUTED


DISTRIBUTED = [[5, 4, 9, 2], [0, 1, 6, 5], [3, 7, 8, 0]]


def test_devices_that_are_not_here():
    for place in (torch.cuda, torch.mps, torch.xpu, torch.mtia, torch.accelerator):
        assert not place.is_available() and place.device_count() == 0
        place.empty_cache()
        with pytest.raises(RuntimeError, match="is_available"):
            place.synchronize()
    assert torch.accelerator.current_accelerator() is None
    assert torch.cuda.memory_allocated() == 0 and torch.cuda.get_rng_state_all() == []
    torch.cuda.manual_seed_all(1)
    with torch.cuda.device(-1), torch.cuda.stream(None):
        pass
    with pytest.raises(RuntimeError, match="no cuda devices"):
        torch.cuda.FloatTensor(2)
    assert not isinstance(torch.ones(1), torch.cuda.FloatTensor) and isinstance(torch.ones(1), torch.FloatTensor)
    assert torch.get_device_module("cpu") is torch.cpu


def test_switches():
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert torch.are_deterministic_algorithms_enabled() and torch.get_deterministic_debug_mode() == 1
    torch.set_deterministic_debug_mode("default")
    assert not torch.are_deterministic_algorithms_enabled()
    torch.set_float32_matmul_precision("high")
    assert torch.get_float32_matmul_precision() == "high"
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.benchmark = False
    with torch.backends.cudnn.flags(enabled=False, benchmark=True):
        assert not torch.backends.cudnn.enabled and torch.backends.cudnn.benchmark
    assert torch.backends.cudnn.enabled and not torch.backends.cudnn.benchmark
    torch.backends.cuda.matmul.allow_tf32 = True
    with nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):
        assert torch.backends.cuda.math_sdp_enabled() and not torch.backends.cuda.flash_sdp_enabled()
    assert torch.backends.cuda.flash_sdp_enabled()
    for name in torch.backends.__all__:
        getattr(torch.backends, name)


def test_compile_and_jit():
    module = nn.Linear(2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = torch.compile(module)
        scripted = torch.jit.script(module)
        twice = torch.jit.trace(lambda x: x * 2, torch.ones(1))
    assert compiled._orig_mod is module and list(compiled.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
    assert compiled.in_features == 2
    x = torch.ones(1, 2)
    assert torch.equal(compiled(x), module(x)) and scripted is module and twice(x).tolist() == [[2, 2]]
    compiled.eval()
    assert not module.training and not compiled.training
    assert not torch.jit.is_scripting() and not torch.jit.is_tracing() and torch._C._get_tracing_state() is None
    assert torch.jit.isinstance([1, 2], list[int]) and not torch.jit.isinstance([1, "a"], list[int])
    for refused in (
        lambda: torch.jit.load("x"),
        lambda: torch.jit.save(module, "x"),
        lambda: torch.onnx.export(module, x, "x"),
    ):
        with pytest.raises(NotImplementedError):
            refused()
    with pytest.raises(RuntimeError, match="fetches nothing"):
        torch.hub.load("owner/repository", "model")


def test_checkpoint_gives_the_same_gradients():
    from flambeau.utils.checkpoint import checkpoint

    def gradients(wrap):
        torch.manual_seed(3)
        layer, x = nn.Linear(4, 4), torch.randn(2, 4, requires_grad=True)

        def part(x, scale=1.0):
            return {"y": nn.functional.dropout(layer(x).tanh(), 0.5) * scale}

        loss = wrap(part, x, scale=2.0)["y"].sum()
        return torch.autograd.grad(loss, [x, layer.weight, layer.bias])

    plain = gradients(lambda f, *a, **k: f(*a, **k))
    kept = gradients(lambda f, *a, **k: checkpoint(f, *a, use_reentrant=False, **k))
    assert all(torch.equal(a, b) for a, b in zip(plain, kept))


def test_checkpoint_runs_again_in_backward():
    calls = []
    x = torch.ones(3, requires_grad=True)

    def part(x):
        calls.append(torch.is_grad_enabled())
        return x * x

    y = torch.utils.checkpoint.checkpoint(part, x, use_reentrant=True)
    assert len(calls) == 1
    y.sum().backward()
    assert len(calls) == 2 and x.grad.tolist() == [2, 2, 2]


def test_profiler():
    with torch.profiler.profile() as prof, torch.profiler.record_function("block"):
        (torch.ones(3) + 1).sum()
    found = {e.key: e for e in prof.key_averages()}
    assert {"block", "aten::ones", "aten::add", "aten::sum"} <= set(found)
    assert found["block"].cpu_time_total >= found["aten::add"].cpu_time_total > 0
    assert "aten::add" in prof.key_averages().table(sort_by="self_cpu_time_total")
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    assert [schedule(i).name for i in range(5)] == ["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "NONE"]
    ready = []
    with torch.profiler.profile(schedule=schedule, on_trace_ready=ready.append) as prof:
        for _ in range(6):
            torch.ones(1)
            prof.step()
    assert len(ready) == 1


def test_events_for_tensorboard(tmp_path):
    from flambeau.utils.tensorboard import SummaryWriter
    from flambeau.utils.tensorboard._records import crc32c

    assert crc32c(b"123456789") == 0xE3069283  # the check value of CRC-32C
    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss", torch.tensor(1.5), 7)
        writer.add_histogram("weights", torch.arange(10.0), 7)
        writer.add_image("picture", torch.zeros(3, 4, 5), 7)
        writer.add_text("note", "hello", 7)
    (name,) = os.listdir(tmp_path)
    data, events = (tmp_path / name).read_bytes(), 0
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        data, events = data[16 + length :], events + 1
    assert events == 5


def test_storages():
    x = torch.arange(6.0).view(2, 3)[1]
    storage = x.storage()
    assert type(storage) is torch.FloatStorage and storage.tolist() == [0, 1, 2, 3, 4, 5] and len(storage) == 6
    storage[3] = 9.0
    assert x.tolist() == [9, 4, 5]
    assert storage.double().dtype == torch.float64 and torch.is_storage(storage)
    assert x.new(2, 2).shape == (2, 2) and x.new([1, 2]).tolist() == [1, 2]


def test_pytree_and_library():
    from flambeau.utils import _pytree as tree

    value = {"a": [1, (2, 3)], "b": None}
    leaves, spec = tree.tree_flatten(value)
    assert leaves == [1, 2, 3, None] and tree.tree_unflatten(leaves, spec) == value

    @torch.library.custom_op("test_names::cube", mutates_args=())
    def cube(x):
        return x**3

    cube.register_autograd(
        lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )
    x = torch.tensor([2.0], requires_grad=True)
    torch.ops.test_names.cube(x).backward()
    assert x.grad.tolist() == [12.0]


def test_spawned_processes(tmp_path):
    (tmp_path / "job.py").write_text(
        "import flambeau as torch\n"
        "def run(rank, place):\n"
        "    if rank == 1: raise ValueError('second one fails')\n"
        "if __name__ == '__main__':\n"
        "    import flambeau.multiprocessing as mp\n"
        "    try: mp.spawn(run, ('x',), nprocs=2)\n"
        "    except mp.ProcessRaisedException as error: print('second one fails' in str(error), error.error_index)\n"
    )
    import subprocess
    import sys

    done = subprocess.run([sys.executable, str(tmp_path / "job.py")], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["True", "1"], done.stderr
