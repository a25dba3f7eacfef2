"""The Python examples in the documents a newcomer reads first run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = [
    pytest.param(code, id=f"{document}:{number}")
    for document in ["README.md", "docs/differentiation.md"]
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL), 1)
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_example_runs(code, tmp_path):
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for printed, told in zip(done.stdout.split(), re.findall(r"^print\(.*\)  # (\S+)$", code, re.MULTILINE), strict=True):
        # The last bits may depend on the processor's instructions.
        assert float(printed) == pytest.approx(float(told), rel=1e-4)


def test_readme_has_an_example():
    assert EXAMPLES


def test_readme_tells_the_same_number_for_both_languages():
    text = (ROOT / "README.md").read_text()
    python, rust = (re.search(rf"```{name}\n(.*?)```", text, re.DOTALL)[1] for name in ("python", "rust"))
    assert re.findall(r"print.*# (\S+)", python) == re.findall(r"println!.*// (\S+)", rust) != []
