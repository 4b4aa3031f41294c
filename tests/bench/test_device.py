"""What is said of a GPU that torch cannot use: from its own words, without one."""

import pytest

from napkin.bench import device
from napkin.errors import DeviceError

TOO_OLD = (
    "CUDA initialization: The NVIDIA driver on your system is too old (found version 11040). "
    "Please update your GPU driver by downloading and installing a new version from the URL: "
    "http://www.nvidia.com/Download/index.aspx Alternatively, go to: https://pytorch.org to "
    "install a PyTorch version that has been compiled with your version of the CUDA driver. "
    "(Triggered internally at /pytorch/c10/cuda/CUDAFunctions.cpp:109.)"
)
FABRIC = (
    "CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet "
    "initialized (Triggered internally at /pytorch/c10/cuda/CUDAFunctions.cpp:109.)"
)
WHEEL = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]


def test_a_driver_that_is_too_old_is_told_by_its_cuda() -> None:
    assert device.in_short(TOO_OLD, "13.0") == (
        "the NVIDIA driver is too old: it knows CUDA 11.4, this torch is built for 13.0; "
        "update the driver or install a torch for its CUDA"
    )


def test_another_warning_of_torch_s_is_told_without_its_place() -> None:
    assert device.in_short(FABRIC, "13.0") == (
        "CUDA initialization: Unexpected error from cudaGetDeviceCount(). "
        "Error 802: system not yet initialized"
    )


@pytest.mark.parametrize("capability", [(7, 5), (8, 6), (8, 9), (9, 0), (10, 3), (12, 1)])
def test_a_gpu_of_a_generation_that_torch_is_built_for_is_taken(
    capability: tuple[int, int],
) -> None:
    device.refuse_not_built_for("a GPU", capability, WHEEL)


@pytest.mark.parametrize("built_for", [[], ["sm_90a", "compute_90"], ["gfx942"]])
def test_a_list_that_allows_it_or_says_nothing_refuses_none(built_for: list[str]) -> None:
    device.refuse_not_built_for("a GPU", (10, 0), built_for)


@pytest.mark.parametrize("capability", [(7, 0), (6, 1), (11, 0)])
def test_a_gpu_that_this_torch_has_no_kernels_for_is_named(capability: tuple[int, int]) -> None:
    with pytest.raises(DeviceError) as caught:
        device.refuse_not_built_for("Tesla V100-SXM2-16GB", capability, WHEEL)
    assert str(caught.value) == (
        f"Tesla V100-SXM2-16GB is sm_{capability[0]}{capability[1]}, and torch {device.TORCH} is "
        "built for sm_75 sm_80 sm_86 sm_90 sm_100 sm_120: install a torch that lists it"
    )


def test_a_busy_gpu_says_where_to_look() -> None:
    with pytest.raises(DeviceError) as caught, device.speaking_for_the_device("cuda:0"):
        raise RuntimeError(
            "CUDA error: CUDA-capable device(s) is/are busy or unavailable\nmore lines"
        )
    assert str(caught.value) == (
        "cuda:0: CUDA error: CUDA-capable device(s) is/are busy or unavailable; "
        "another process may hold it alone: nvidia-smi shows which"
    )
