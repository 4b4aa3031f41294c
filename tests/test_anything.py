"""Random arguments and random files: one line and exit 2 at worst, never a traceback."""

import json
import math
import tempfile
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from napkin.cli.app import app
from napkin.cli.commands import COMMANDS
from napkin.specs.conventions import CONVENTIONS, dashed
from napkin.specs.folders import shipped_folder
from tests.running import DATA, Ran, napkin

GROUP: Any = typer.main.get_command(app)
ASKED = tuple(command for command in COMMANDS if command != "bench")

NUMBERS = st.sampled_from(
    [
        *("70e9", "70B", "15T", "8", "1024", "1e3", "50%", "0.5", "80GB", "80GiB", "2s", "30d"),
        *("$2.50", "400TFLOP/s", "989.4 TFLOP/s", "1e30", "1e-30", "9" * 30, "0", "-1", "nan"),
        *(
            "inf",
            "1e400",
            "1,024",
            "1,536",
            "256,512",
            "8,",
            "7B,13B",
            "40%,50%",
            "",
            " ",
            "-",
            "--",
            "=",
            "%",
            "[red]",
            "…",
            "\x00",
            "\udcff",
            "🦙",
        ),
    ]
)
WORDS = st.sampled_from(
    [
        *("h100-sxm", "a100", "NVIDIA H100", "l40s", "rtx-4090", "bf16", "fp8", "fp32", "mixed"),
        *("adamw", "adam8bit", "sgd", "json", "csv", "markdown", "svg", "table", "full", "none"),
        *("micro-batch", "seq-len", "eager", "fused", "0", "3", "nf4", "linear:L=2,d=8"),
        *("promised", "measured", "none.yaml", "/", ".", "~", "a/b", "config.json"),
        *("llama-3-8b", "llama", "meta-llama/Llama-3.1-8B", "linear:L=2,d=8", "llama:", "L=1"),
        *("llama:L=2,d=64,H=4,kv=2,ff=96,V=100", "gpt2:L=0,d=1,H=1,ff=1,V=1", "palm", "exact-full"),
        *(
            "all",
            "h100,a100",
            "h100,all",
            "bf16,fp8",
            "fp32,mixed",
            "adamw,sgd",
            "none,full",
            "0,3",
        ),
        *("4x8", "B=8,d=4", "B=8,B=9", "x", "8x", "1e-8", "-70000", "2TB/s", "six", "views"),
        *("AMD Instinct MI250X", "v100-sxm2-16gb", "H100-SXM5-80GB", "llama3", "fp8_e4m3fn"),
    ]
)
VALUES = NUMBERS | WORDS | st.text(max_size=20)


def options_of(command: str) -> list[str]:
    # --output writes files, --check builds models: tests of their own look at them.
    parameters = GROUP.get_command(None, command).params
    return [
        p.opts[0]
        for p in parameters
        if p.name not in ("output", "check", "exit_code") and p.opts[0].startswith("-")
    ]


OPTIONS = {command: options_of(command) for command in ASKED}
FLAGS = {
    "--sparse",
    "--frozen-base",
    "--chunked-loss",
    "--bucket-view",
    "--inference",
    "--double-quant",
    "--compute-optimal",
}


SIZES = st.sampled_from([["--params", "70e9"], ["--model", "linear:L=2,d=8"], ["--model", "gpt2"]])


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    command = draw(st.sampled_from(ASKED))
    # Often what the question cannot do without, so that the rest is reached too.
    usual = {
        "train-time": [*draw(SIZES), "--tokens", "15e12", "--gpus", "1024"],
        "max-model": ["--gpus", "8"],
        "mfu": [*draw(SIZES), "--tokens-per-second", "9600", "--gpus", "1"],
        "memory": ["--model", "qwen3-0.6b"],
        "flops": ["--model", "qwen3-0.6b"],
        "models": ["gpt2"],
        "hardware": ["h100-sxm"],
        "tensor": ["49152x12288"],
        "matmul": ["1024x4096", "4096x4096"],
        "data": ["--tokens", "1.4T", "--vocab", "32000"],
        "checkpoint": ["gpt2", "--bandwidth", "1GB/s", "--gpus", "8"],
        "dtypes": ["bf16"],
        "explain": ["six"],
    }[command]
    line = [command, *(usual if draw(st.booleans()) else [])]
    for option in draw(st.lists(st.sampled_from(OPTIONS[command]), max_size=5)):
        line += [option] if option in FLAGS else [option, draw(VALUES)]
    return line + draw(st.lists(VALUES, max_size=1))


def check(ran: Ran, line: list[str]) -> None:
    assert ran.code in (0, 2), ran
    if ran.code == 2:
        assert ran.out == ""
        error = ran.err.splitlines()[-1]
        assert error.startswith("Error: ")
        # Typer's own usage errors keep their hint above.
        assert len(ran.err.splitlines()) == 1 or ran.err.startswith("Usage: ")
    elif "--format" in line and line[len(line) - line[::-1].index("--format")] == "json":
        json.loads(ran.out, parse_constant=pytest.fail)


SHAPES = ("linear:L=2,d=8", "linear:L=4,d=4096", "gpt2", "qwen3-0.6b", "mixtral-8x7b")
RUNS = (
    "mfu --tokens-per-second 9600 --gpus 1",
    "mfu --tokens-per-second-per-gpu 9600",
    "mfu --tokens 15T --gpu-hours 1e6",
    "mfu --step-time 2s --tokens-per-step 4M --gpus 8",
    "mfu --step-time 2s --micro-batch 2 --seq-len 512 --gpus 8",
    "mfu --achieved 400TFLOP/s",
    "mfu --flops 1e24 --time 30d --gpus 1024",
    "train-time --tokens 15T --gpus 1024",
    "flops",
)


@st.composite
def counted_runs(draw: st.DrawFn) -> list[str]:
    """A question about a model's shape, with what changes how its FLOP are counted."""
    line = [*draw(st.sampled_from(RUNS)).split(), "--model", draw(st.sampled_from(SHAPES))]
    choices = {
        "--convention": [dashed(name) for name in CONVENTIONS],
        "--recompute": ["none", "selective", "full"],
        "--frozen-base": [""],
        "--seq-len": ["512", "4096"],
        "--hardware": ["h100", "AMD Instinct MI250X"],
    }
    for option in draw(st.lists(st.sampled_from(sorted(choices)), unique=True)):
        if option in OPTIONS[line[0]] and option not in line:
            line += (
                [option, draw(st.sampled_from(choices[option]))] if choices[option][0] else [option]
            )
    return [*line, "--format", draw(st.sampled_from(["json", "table"]))]


@settings(max_examples=300, deadline=None)
@given(counted_runs())
def test_every_way_to_count_a_run_is_answered_or_refused_in_one_line(line: list[str]) -> None:
    check(napkin(line), line)


@settings(max_examples=400, deadline=None)
@given(command_lines())
def test_any_arguments_are_answered_or_refused_in_one_line(line: list[str]) -> None:
    check(napkin(line), line)


SHIPPED = [path.read_text("utf-8") for path in sorted(shipped_folder().glob("*.yaml"))]
SCALARS = st.sampled_from(
    [
        "",
        "yes",
        "no",
        "null",
        "~",
        "4090",
        "1e14",
        "312e12",
        "[]",
        "{}",
        "[1, 2]",
        "&a x",
        "*a",
        ".nan",
    ]
)


@st.composite
def nearly_hardware(draw: st.DrawFn) -> str:
    """A shipped file with a few lines changed, doubled, cut or moved."""
    lines = draw(st.sampled_from(SHIPPED)).splitlines()
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines) - 1))
        key = lines[at].partition(":")[0]
        change = draw(st.sampled_from(["value", "double", "drop", "indent", "text"]))
        if change == "value":
            lines[at] = f"{key}: {draw(SCALARS | st.text(max_size=12))}"
        elif change == "double":
            lines.insert(at, lines[at])
        elif change == "drop" and len(lines) > 1:
            del lines[at]
        elif change == "indent":
            lines[at] = "  " + lines[at]
        else:
            lines[at] = draw(st.text(max_size=20))
    return "\n".join(lines)


FILES = nearly_hardware().map(lambda text: text.encode("utf-8", "surrogatepass"))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FILES | st.binary(max_size=300))
def test_any_file_is_read_or_refused_in_one_line(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "card.yaml"
        path.write_bytes(content)
        for line in (
            ["hardware", str(path)],
            ["hardware", str(path), "h100-sxm", "--format", "json"],
            ["train-time", "--params", "7B", "--tokens", "1T", "--gpus", "8", "-H", str(path)],
            ["max-model", "--gpus", "8", "--hardware", str(path), "--format", "json"],
        ):
            check(napkin(line), line)


CONFIGS = [json.loads(path.read_text("utf-8")) for path in sorted((DATA / "configs").glob("*"))]
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=5,
)


@st.composite
def nearly_a_config(draw: st.DrawFn) -> dict[str, Any]:
    """A config.json with a few fields changed, dropped or nested."""
    fields = dict(draw(st.sampled_from(CONFIGS)))
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(sorted(fields)))
        if draw(st.booleans()):
            fields[name] = draw(JUNK)
        else:
            del fields[name]
    return {"model_type": "other", "text_config": fields} if draw(st.booleans()) else fields


@settings(max_examples=200, deadline=None)
@given(nearly_a_config())
def test_any_config_is_counted_or_refused_in_one_line(fields: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        path.write_text(json.dumps(fields))
        for line in (
            ["models", folder],
            ["flops", "--model", str(path), "--format", "json"],
            ["train-time", "--model", str(path), "--tokens", "1T", "--gpus", "8"],
            ["memory", "--model", str(path), "--fit", "seq-len", "--format", "json"],
        ):
            check(napkin(line), line)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["--dtype", "--device", "--size", "--seconds"]), VALUES),
        max_size=2,
    )
)
def test_bench_too_answers_or_refuses(options: list[tuple[str, str]]) -> None:
    last = dict(options)
    last.setdefault("--device", "cpu")
    if last.get("--size", "") not in ("", "nan", "0", "-1", "1e400"):
        last["--size"] = "64"
    if last.get("--seconds", "") not in ("nan", "0", "-1", "1e400", ""):
        last["--seconds"] = "0.01"
    last.setdefault("--size", "32")
    last.setdefault("--seconds", "0.01")
    line = ["bench", *(part for option in last.items() for part in option)]
    ran = napkin(line)
    if ran.code != 1:  # a device that is not there
        check(ran, line)


@settings(max_examples=200, deadline=None)
@given(st.floats(1e3, 1e15), st.floats(1e3, 1e18), st.integers(1, 10**6), st.floats(0.001, 1))
def test_more_gpus_or_a_higher_mfu_never_take_longer(
    params: float, tokens: float, gpus: int, mfu: float
) -> None:
    from napkin import train_time

    one = train_time(params=params, tokens=tokens, gpus=gpus, mfu=mfu).result
    two = train_time(params=params, tokens=tokens, gpus=2 * gpus, mfu=mfu).result
    assert math.isclose(one["days"], 2 * two["days"], rel_tol=1e-9)
    assert math.isclose(one["flops"], 6 * params * tokens, rel_tol=1e-9)
