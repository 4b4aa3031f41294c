"""How a training step is laid out on GPUs: the settings that its memory follows from."""

from napkin.accounting.operations import RANDOM_STATE, Kernels
from napkin.record import Record
from napkin.specs.optimizers import Optimizer, Precision


class Layout(Record):
    """All that decides what one GPU holds, but for the model."""

    precision: Precision
    optimizer: Optimizer
    ranks: int  # data-parallel
    zero: int
    micro_batch: int = 1
    seq_len: int = 1
    grad_accum: int = 1
    step: str = "foreach"
    bucket_view: bool = False
    attention: str = "flash"
    norm: str = "upcast"
    recompute: str = "none"
    chunked_loss: bool = False
    formula: str = "measured"  # of what a layer keeps
    autocast: bool = False  # bf16 matmuls on fp32 weights
    random_state: int = RANDOM_STATE  # 0 on a CPU

    @property
    def value_bytes(self) -> int:
        """Of one value of the forward pass."""
        return 2 if self.autocast else self.precision.weights

    @property
    def kernels(self) -> Kernels:
        return Kernels(
            attention=self.attention,
            norm=self.norm,
            autocast=self.autocast,
            scores_again=self.recompute == "selective" and self.attention == "eager",
            in_fp32=self.value_bytes == 4,
            random_state=self.random_state,
        )
