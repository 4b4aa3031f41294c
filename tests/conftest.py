"""Every test starts from a machine that has set nothing up for napkin."""

import os
import re
import signal
from pathlib import Path

import pytest

VARIABLES = (
    *("NAPKIN_HARDWARE", "NAPKIN_PEAK", "NO_COLOR", "FORCE_COLOR"),
    *("COLUMNS", "PYTHONIOENCODING", "CUDA_VISIBLE_DEVICES"),
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"),
)
# What imports it, and what measures: `bench --size 64`, `bench --model gpt2`.
NEEDS_TORCH = re.compile(
    r"^(import|from) (torch|transformers|napkin\.(bench|checking))\b|bench.*--(size|model)", re.M
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out all that needs torch")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Before it is imported: torch need not be there."""
    if not config.getoption("quick") or not collection_path.is_file():
        return None
    return bool(NEEDS_TORCH.search(collection_path.read_text("utf-8"))) or None


# What starts the tests in the background may have these ignored, and every child inherits that.
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(number) is signal.SIG_IGN:
        usual = signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL
        signal.signal(number, usual)


@pytest.fixture(autouse=True, scope="session")
def _compiled_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    """For the hundreds of processes that the tests start, and apart from the checkout."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(tmp_path_factory.mktemp("bytecode"))


@pytest.fixture(autouse=True)
def _nothing_set_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
