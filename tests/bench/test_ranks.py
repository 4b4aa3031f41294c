"""Several ranks: what each says to the others, and two of them for real over gloo."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from napkin.accounting import communication
from napkin.bench import all_reduce, device, ranks, statistics
from napkin.bench.all_reduce import Reduced
from napkin.bench.device import Device
from napkin.bench.ranks import Member
from napkin.errors import DeviceError, NapkinError
from napkin.quantity import given
from napkin.questions.bench import measurement
from napkin.questions.bench import ranks as said
from tests.running import ROOT, napkin

CPU = Device("cpu", "this CPU")
NODE = [Member(n, "node7", Device(f"cuda:{n}", "NVIDIA H200")) for n in range(4)]
QUICK = "--device cpu --size 128 --seconds 0.1"


def torchrun(
    *words: str, env: dict[str, str] | None = None, program: tuple[str, ...] = ("-m", "napkin")
) -> subprocess.CompletedProcess[str]:
    run = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    return subprocess.run(
        [*run, *program, "bench", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "", **(env or {})},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


def errors(ran: subprocess.CompletedProcess[str]) -> list[str]:
    """napkin's own lines, among what torchrun says of a rank that failed."""
    return [line for line in ran.stderr.splitlines() if line.startswith("Error:")]


def test_two_ranks_measure_at_once_and_the_slowest_counts(tmp_path: Path) -> None:
    file = tmp_path / "answer.json"
    ran = torchrun(*f"{QUICK} --dtype bf16,fp32 --output {file}".split())
    assert (ran.returncode, ran.stdout, errors(ran)) == (0, "", [])
    for found in json.loads(file.read_text())["answers"]:
        several = found["result"]["ranks"]
        rates = several["flops_per_second"]
        assert several["size"] == len(rates) == 2
        assert 0 < several["min"] <= several["median"] <= several["max"]
        assert several["min"] == min(rates) == found["result"]["flops_per_second"]["median"]
        slowest = several["slowest"]
        assert rates[slowest["rank"]] == min(rates)
        assert slowest["device"] == found["result"]["device"] == "cpu"
        sizes = found["result"]["all_reduce"]
        assert [each["bytes"] for each in sizes] == [2**20, 2**22, 2**24, 2**26]
        for each in sizes:
            assert each["algorithm_bandwidth"] == each["bytes"] / each["seconds"]
            assert 0 < each["bus_bandwidth"] == each["algorithm_bandwidth"] < 1000e9
        assert found["derivation"][-1]["value"] == sizes[-1]["bus_bandwidth"]
        (threads,) = (note for note in found["notes"] if "OMP_NUM_THREADS" in note)
        assert threads.startswith("a rank computes with ")


def test_a_scan_takes_the_same_way_on_all_ranks() -> None:
    ran = torchrun(
        *["--device", "cpu", "--scan", "--seconds", "0.02", "--warmup", "0.01", "--format", "json"]
    )
    assert (ran.returncode, errors(ran)) == (0, [])
    found = json.loads(ran.stdout)["answers"]
    assert [each["result"]["shape"][0] for each in found] == [256, 512, 1024]
    assert all(len(each["result"]["ranks"]["flops_per_second"]) == 2 for each in found)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--dtype fp8", "--dtype: bench measures fp64 fp32 fp16 bf16 int8 here, not fp8"),
        ("--list --size 9", "--list: measures nothing; leave the other options out"),
        ("--size 0", "--size: '0' is not above 0; write 8192, or several: 4096,8192"),
        ("--sise 128", "No such option: --sise (Possible options: --list, --shape, --size)"),
    ],
)
def test_a_mistake_is_told_once(line: str, says: str) -> None:
    ran = torchrun(*line.split())
    assert ran.returncode != 0
    assert (ran.stdout, errors(ran)) == ("", [f"Error: {says}"])


def test_a_rank_that_is_gone_is_said_without_gloo_s_source_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gone(*_: object) -> None:
        raise RuntimeError("[/src/gloo/pair.cc:553] Connection closed by peer [::1]:80. Good luck")

    monkeypatch.setattr(torch.distributed, "all_gather_object", gone)
    with pytest.raises(DeviceError) as error:
        ranks.Ranks(rank=0, size=2).wait()
    assert str(error.value) == "rank 0 lost another rank: Connection closed by peer [::1]:80"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("--dtype fp32", "--dtype: 'fp32' on rank 1 and 'bf16' on rank 0"),
        ("--bandwidth", "--bandwidth: given on rank 1 and not given on rank 0"),
    ],
)
def test_ranks_that_are_asked_different_things_are_refused(
    more: str, says: str, tmp_path: Path
) -> None:
    program = tmp_path / "different.py"
    program.write_text(
        "import os, sys\n"
        "from napkin.cli import main\n"
        f"sys.argv += {more.split()} if os.environ['RANK'] == '1' else []\n"
        "main()\n"
    )
    ran = torchrun(*QUICK.split(), program=(str(program),))
    assert ran.returncode != 0
    same = "start every rank with the same options"
    assert (ran.stdout, errors(ran)) == ("", [f"Error: {says}; {same}"])


def test_no_rank_takes_another_one_s_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "2")):
        monkeypatch.setenv(name, value)
    ran = napkin("bench --device cuda:1")
    says = "--device: every rank takes its own; write cuda, or leave it out"
    assert (ran.code, ran.out, ran.err) == (2, "", f"Error: {says}\n")


def test_what_breaks_on_one_rank_stops_all_and_names_it(tmp_path: Path) -> None:
    program = tmp_path / "broken.py"
    program.write_text(
        "import os\n"
        "from napkin.bench import timing\n"
        "from napkin.cli import main\n"
        "from napkin.errors import DeviceError\n"
        "def broken(*_):\n"
        "    raise DeviceError('this CPU: is on fire')\n"
        "if os.environ['RANK'] == '1':\n"
        "    timing._warm_up = broken\n"
        "main()\n"
    )
    ran = torchrun(*QUICK.split(), program=(str(program),))
    assert ran.returncode != 0
    (error,) = errors(ran)
    assert error.startswith("Error: rank 1 on ")
    assert error.endswith(": this CPU: is on fire")


def test_one_rank_measures_as_without_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "1")):
        monkeypatch.setenv(name, value)
    ran = napkin("bench --device cpu --size 96 --seconds 0.02 --format json")
    assert ran.code == 0
    (found,) = json.loads(ran.out)["answers"]
    assert "torchrun started one rank: an all-reduce needs two or more" in found["notes"]
    assert "ranks" not in found["result"]


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("RANK", "x", "RANK: 'x' is not a whole number; torchrun sets it"),
        ("MASTER_PORT", "abc", "MASTER_PORT: 'abc' is not a whole number; torchrun sets it"),
        ("WORLD_SIZE", "-1", "WORLD_SIZE: '-1' is not a whole number; torchrun sets it"),
        ("RANK", "2", "RANK: 2 is not below WORLD_SIZE, 2; torchrun sets both"),
    ],
)
def test_an_environment_that_torchrun_does_not_make_is_refused(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, says: str
) -> None:
    for name, usual in (("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "2")):
        monkeypatch.setenv(name, usual)
    monkeypatch.setenv(variable, value)
    ran = napkin("bench --device cpu")
    assert (ran.code, ran.out, ran.err) == (2, "", f"Error: {says}\n")


def test_an_environment_without_all_three_is_no_torchrun_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RANK", "1")  # as cluster software numbers machines
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert ranks.here() == ranks.Ranks()


def test_what_a_library_prints_is_no_part_of_the_answer() -> None:
    code = (
        "import ctypes\n"
        "from napkin.bench import ranks\n"
        "with ranks._libraries_on_stderr():\n"
        "    ctypes.CDLL(None).puts(b'NCCL version')\n"
        "print('answer')"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True)
    assert (ran.stdout, ran.stderr) == (b"answer\n", b"NCCL version\n")


def test_more_ranks_than_gpus_are_refused() -> None:
    device.refuse_too_few(8, 8)
    with pytest.raises(NapkinError) as caught:
        device.refuse_too_few(2, 4)
    assert str(caught.value) == (
        "torchrun started 4 ranks and there are 2 GPUs; write --nproc-per-node 2"
    )


@pytest.mark.parametrize(("p", "factor"), [(1, 0), (2, 1), (8, 1.75)])
def test_the_bus_carries_what_nccl_tests_counts(p: int, factor: float) -> None:
    t = given("t", "", 0.5, "s", "")
    algorithm = communication.algorithm_bandwidth(given("S", "", 2**30, "B", ""), t)
    assert algorithm.value == 2**31
    found = communication.all_reduce_bus_bandwidth(algorithm, given("p", "", p, "1", ""))
    assert found.value == factor * 2**31


def test_the_slowest_is_found_and_set_against_the_median() -> None:
    assert statistics.slowest([3.0, 1.0, 2.0]) == 1
    assert statistics.among([4.0, 1.0, 2.0, 3.0]) == (1.0, 2.5, 4.0)
    assert statistics.behind([100.0, 100.0, 90.0]) == pytest.approx(0.1)
    assert statistics.behind([7.0, 7.0]) == 0


@pytest.mark.parametrize(
    ("slowest", "warnings"),
    [
        (770e12, []),
        (740e12, ["straggler: rank 2 on node7 (cuda:2) is 7.5 % under the ranks' median"]),
        (
            640e12,
            [
                "straggler: rank 2 on node7 (cuda:2) is 20.0 % under the ranks' median, "
                "more than 10 %: take it out, or every step waits for it"
            ],
        ),
    ],
)
def test_a_straggler_is_named(slowest: float, warnings: list[str]) -> None:
    assert said.straggler([800e12, 800e12, slowest, 800e12], NODE) == warnings


def test_what_several_ranks_add_to_the_answer() -> None:
    rates = [790e12, 800e12, 780e12, 796e12]
    found = said.result(rates, NODE, [Reduced(2**30, 4e-3)])
    assert found["ranks"] == {
        "size": 4,
        "min": 780e12,
        "median": 793e12,
        "max": 800e12,
        "slowest": {"rank": 2, "host": "node7", "device": "cuda:2"},
        "flops_per_second": rates,
    }
    (reduced,) = found["all_reduce"]
    assert reduced["algorithm_bandwidth"] == pytest.approx(268.4e9, rel=1e-3)
    assert reduced["bus_bandwidth"] == pytest.approx(1.5 * 268.4e9, rel=1e-3)
    assert said.notes(rates, NODE, [Reduced(2**30, 4e-3)], threads=16) == [
        "4 ranks at once: min 780 TFLOP/s, median 793 TFLOP/s, max 800 TFLOP/s",
        "the figure is the slowest's, rank 2 on node7 (cuda:2): synchronous training waits for it",
        "all-reduce of bf16, bus bandwidth: 1,024 MiB 402.7 GB/s",
    ]


def test_a_sum_is_exact_or_refused() -> None:
    blocks = [all_reduce.whole_numbers(rank) for rank in range(300)]
    assert len({tuple(block.tolist()) for block in blocks}) == 300
    right = torch.stack(blocks).sum(0)
    in_bf16 = torch.stack(blocks).bfloat16().sum(0, dtype=torch.bfloat16)
    assert torch.equal(in_bf16, right.bfloat16())
    whole = all_reduce.repeated(right, 2**20, CPU)
    assert whole.nbytes == 2**20
    all_reduce.refuse_wrong(whole.clone(), whole, CPU)
    for wrong in (whole.roll(1), whole * 2, whole.index_fill(0, torch.tensor([7]), 99.0)):
        with pytest.raises(DeviceError, match="the sum of an all-reduce of 1 MiB is wrong; no "):
            all_reduce.refuse_wrong(wrong, whole, CPU)


def test_an_error_is_told_once_and_as_it_is_by_a_process_alone() -> None:
    alone = ranks.Ranks()
    assert alone.together(lambda: 7) == [7]

    def broken() -> None:
        alone.together(lambda: alone.tell(NapkinError("no")))

    with pytest.raises(NapkinError, match=r"^no$"):
        alone.together(broken)


def test_the_figure_of_several_ranks_is_that_of_the_slowest_one_s_device() -> None:
    run = measurement.Run(NODE[0].device, 3.0, None, why_cpu=None, save=False, members=NODE)
    assert run.on(2).device.torch == "cuda:2"
