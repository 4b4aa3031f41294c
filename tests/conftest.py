"""Every test starts from a machine that has set nothing up for napkin."""

from pathlib import Path

import pytest

VARIABLES = (
    *("NAPKIN_HARDWARE", "NAPKIN_PEAK", "NO_COLOR", "FORCE_COLOR"),
    *("COLUMNS", "PYTHONIOENCODING", "CUDA_VISIBLE_DEVICES"),
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"),
)


@pytest.fixture(autouse=True)
def _nothing_set_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
