"""The demo, run as a person runs it: `python -m flambeau examples/train_gpt.py`."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
RUN = [sys.executable, "-m", "flambeau", str(ROOT / "examples" / "train_gpt.py")]
SMALL = ["--layers", "2", "--width", "32", "--threads", "1", "--every", "20"]


def train(out: Path, *options: str, fails: bool = False) -> subprocess.CompletedProcess:
    done = subprocess.run([*RUN, "--out", str(out), *options], capture_output=True, text=True, timeout=300)
    assert (done.returncode != 0) == fails, done.stderr
    return done


def losses(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text().splitlines() if not line.startswith("#")]


@pytest.fixture(scope="module")
def hundred_steps(tmp_path_factory) -> Path:
    """What the full-size model leaves after 100 steps on one thread."""
    out = tmp_path_factory.mktemp("hundred")
    train(out, "--steps", "100", "--threads", "1")
    return out


def test_losses_are_pytorchs(hundred_steps):
    expected = losses(ROOT / "tests" / "expected" / "train_gpt.tsv")
    found = losses(hundred_steps / "losses.tsv")
    assert [row[0] for row in found] == [row[0] for row in expected]
    apart = [abs(float(mine[1]) - float(theirs[1])) for mine, theirs in zip(found, expected)]
    assert max(apart) <= 1e-3, f"step {apart.index(max(apart)) + 1} is {max(apart)} apart"


def test_losses_do_not_depend_on_threads(hundred_steps, tmp_path):
    train(tmp_path, "--steps", "20", "--threads", "2")
    assert losses(tmp_path / "losses.tsv") == losses(hundred_steps / "losses.tsv")[:20]


def test_leaves_a_sample_in_the_texts_own_letters(hundred_steps):
    sample = (hundred_steps / "sample.txt").read_text()
    assert sample.startswith("And God said") and len(sample) > 600
    assert set(sample) <= set((ROOT / "data" / "english.txt").read_text())
    assert sample.count(" ") > 60, "after 100 steps the model knows that words are short"


def test_a_second_run_goes_on_to_the_same_bits(tmp_path):
    train(tmp_path / "whole", *SMALL, "--steps", "50", "--dropout", "0.1")
    train(tmp_path / "parts", *SMALL, "--steps", "30", "--schedule", "50", "--dropout", "0.1")
    second = train(tmp_path / "parts", *SMALL, "--steps", "50", "--dropout", "0.1", "--resume")
    assert "30 of 50 steps are done" in second.stdout
    for made in ("losses.tsv", "sample.txt"):
        assert (tmp_path / "parts" / made).read_bytes() == (tmp_path / "whole" / made).read_bytes()


@pytest.mark.parametrize(
    ("stop", "fresh", "message"),
    [
        (signal.SIGINT, [], "the same command goes on from"),
        (signal.SIGINT, ["--fresh"], "the same command, without --fresh, goes on from"),
        (signal.SIGTERM, [], "the same command goes on from"),
    ],
)
def test_a_stopped_run_keeps_what_is_done(tmp_path, stop, fresh, message):
    command = [*RUN, "--out", str(tmp_path), *SMALL, "--steps", "100000", *fresh]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr.readline().startswith("step 1/100000:")
        running.send_signal(stop)
        output, errors = running.communicate(timeout=60)
    assert running.returncode == 130 and message in errors and "Traceback" not in errors
    done = len(losses(tmp_path / "losses.tsv"))
    again = train(tmp_path, *SMALL, "--steps", str(done + 1), "--schedule", "100000")
    assert f"{done} of {done + 1} steps are done" in again.stdout and "learning rate" not in again.stdout
    again = train(tmp_path, *SMALL, "--steps", str(done + 2))
    assert f"the learning rate now falls over {done + 2} steps, not 100000" in again.stdout
    again = train(tmp_path, *SMALL, "--steps", "1")
    assert f"has {done + 2} steps done and --steps is 1: there is nothing left to train" in again.stdout


def test_help_tells_each_default_once():
    text = subprocess.run([*RUN, "--help"], capture_output=True, text=True, check=True).stdout
    text = " ".join(text.split())
    assert "(default: 3000)" in text and "(default: --steps)" in text
    assert "None" not in text and "False" not in text


def test_a_terminal_of_no_size_gets_lines(tmp_path):
    import pty

    main, end = pty.openpty()
    with subprocess.Popen([*RUN, "--out", str(tmp_path), *SMALL, "--steps", "2"], stdout=end, stderr=end) as running:
        os.close(end)
        shown = b""
        try:
            while more := os.read(main, 65536):
                shown += more
        except OSError:
            pass  # Linux says so when the other end is closed.
    os.close(main)
    assert running.returncode == 0 and b"step 2/2: loss" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--text", "nowhere.txt"], "No such file"),
        (["--prompt", "ß"], "characters of the text"),
        (["--heads", "3"], "cannot be shared evenly"),
        (["--steps", "0"], "not a whole number above 0"),
        (["--dropout", "1"], "under 1"),
        (["--resume"], "no "),
        (["--device", "cuda"], "train_gpt.py: "),
    ],
)
def test_bad_options_end_in_one_clear_line(tmp_path, options, message):
    errors = train(tmp_path, *options, fails=True).stderr
    assert message in errors and "Traceback" not in errors


def test_a_checkpoint_that_does_not_fit_is_refused(tmp_path):
    train(tmp_path, *SMALL, "--steps", "1")
    checkpoint = tmp_path / "checkpoint.pt"
    before = checkpoint.read_bytes()
    errors = train(tmp_path, *SMALL, "--width", "64", fails=True).stderr
    assert "width 32, now 64" in errors and "Traceback" not in errors
    checkpoint.write_bytes(before[: len(before) // 2])
    errors = train(tmp_path, *SMALL, fails=True).stderr
    assert "not a checkpoint that can be read" in errors and "Traceback" not in errors
