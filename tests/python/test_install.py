"""install_as_torch and `python -m flambeau`, each in a process of its own."""

import json
import subprocess
import sys
import textwrap

import pytest


def run(*arguments, cwd=None, status=0):
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=cwd, timeout=120)
    assert done.returncode == status, done.stderr
    return done


def python(code, **settings):
    return run("-c", textwrap.dedent(code), **settings).stdout


def test_same_modules_under_both_names():
    out = python(
        """
        import sys, flambeau
        from flambeau import nn as before
        flambeau.install_as_torch()
        flambeau.install_as_torch()
        import torch, torch.nn.functional as F, torch.utils.data
        from torch.optim.lr_scheduler import LambdaLR
        from torch import nn
        import importlib, importlib.util, importlib.metadata
        assert torch is flambeau and nn is before is flambeau.nn and F is flambeau.nn.functional
        assert sys.modules["torch.utils.data"] is sys.modules["flambeau.utils.data"]
        assert LambdaLR is flambeau.optim.lr_scheduler.LambdaLR
        assert importlib.util.find_spec("torch") is not None and importlib.util.find_spec("torch.nn") is not None
        assert torch.__spec__.name == "flambeau" and nn.__spec__.name == "flambeau.nn"
        print(importlib.metadata.version("torch"), torch.__version__)
        """
    )
    version = out.split()
    assert version[0] == version[1] and version[0].startswith("2.15")


def test_missing_names_are_reported_by_name():
    out = python(
        """
        import flambeau
        flambeau.install_as_torch()
        import torch
        for act in ("import torch.foo", "torch.baz", "torch.nn.Qux", "torch.optim.Q", "torch.cuda.nothing"):
            try:
                exec(act)
            except (ImportError, AttributeError) as error:
                print(type(error).__name__, error)
        """
    )
    assert out.splitlines() == [
        "ModuleNotFoundError flambeau has no 'foo' yet",
        "AttributeError flambeau has no 'baz' yet",
        "AttributeError flambeau has no 'nn.Qux' yet",
        "AttributeError flambeau has no 'optim.Q' yet",
        "AttributeError flambeau has no 'cuda.nothing' yet",
    ]


SCRIPT = """
import importlib.metadata, multiprocessing, pickle, subprocess, sys
import torch
import helper

class Local:
    def __init__(self):
        self.kind = torch.nn.Linear.__module__

def child(queue, x):
    queue.put([(torch.tensor([x]) * 2).tolist(), importlib.metadata.version("torch"), helper.name()])

if __name__ == "__main__":
    print(sys.argv[1:], torch.__name__, __name__, pickle.loads(pickle.dumps(Local())).kind)
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue, 4))
    process.start()
    print(queue.get(timeout=60))
    process.join()
    code = "import importlib.util as u; assert u.find_spec('torch'); import torch.nn, torch; print(torch.__name__)"
    print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip())
    sys.exit(3)
"""


def test_script_with_children(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "helper.py").write_text("import torch\ndef name():\n    return torch.__name__\n")
    lines = run("-m", "flambeau", str(tmp_path / "script.py"), "a", "-b", status=3).stdout.splitlines()
    assert lines == [
        "['a', '-b'] flambeau __main__ flambeau.nn.modules.linear", "[[8], '2.15.0', 'flambeau']", "flambeau"
    ]  # fmt: skip


def test_module_and_code(tmp_path):
    (tmp_path / "mod.py").write_text("import sys, torch\nprint(__name__, torch.__name__, sys.argv[1:])\n")
    assert run("-m", "flambeau", "-m", "mod", "x", cwd=tmp_path).stdout == "__main__ flambeau ['x']\n"
    assert (
        run("-m", "flambeau", "-c", "import torch, sys; print(torch.__name__, sys.argv)", "y").stdout
        == "flambeau ['-c', 'y']\n"
    )


def test_what_cannot_be_run():
    assert "can't open file 'nothing.py'" in run("-m", "flambeau", "nothing.py", status=2).stderr
    assert "usage" in run("-m", "flambeau", status=2).stderr
    assert "usage" in run("-m", "flambeau", "--help").stdout
    assert "unknown option --fast\nusage" in run("-m", "flambeau", "--fast", status=2).stderr
    assert "following PyTorch 2.15" in run("-m", "flambeau", "--version").stdout


def test_devices_that_are_not_here():
    import flambeau as torch

    assert not torch.cuda.is_available() and torch.cuda.device_count() == 0 and not torch.backends.mps.is_available()
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = True
    with pytest.raises(RuntimeError, match="cuda"):
        torch.cuda.current_device()
    for device in ("cuda", "cuda:0", "mps"):
        with pytest.raises((RuntimeError, AssertionError, NotImplementedError), match="(?i)cuda|mps"):
            torch.zeros(1, device=device)


def test_import_is_light():
    """Nothing heavy comes along, and what has not been asked for is not imported."""
    code = "import json, sys; import numpy; had = set(sys.modules); import flambeau; print(json.dumps(sorted(set(sys.modules) - had)))"
    new = json.loads(python(code))
    assert [name for name in new if not name.startswith("flambeau")] == []
    assert not {"flambeau.nn", "flambeau.optim", "flambeau.utils.data", "flambeau.serialization"} & set(new)
