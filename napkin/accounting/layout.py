"""How a training step is laid out on GPUs: the settings that its memory follows from."""

from napkin.accounting.operations import RANDOM_STATE, Kernels
from napkin.record import Record
from napkin.specs.optimizers import Optimizer, Precision
from napkin.specs.quantization import Quantization


class Degrees(Record):
    """Over how many ranks a model is divided, and how: tensor and pipeline parallelism
    (Megatron-LM 2104.04473), experts (2006.16668), context (2310.01889)."""

    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1  # of the data- and context-parallel ranks
    sequence_parallel: bool = False
    virtual_stages: int = 1  # of one rank, in an interleaved schedule
    imbalance: float = 1.0  # of experts

    @property
    def of_a_replica(self) -> int:
        """Ranks that hold one copy of the model and read one batch."""
        return self.tp * self.pp * self.cp


UNDIVIDED = Degrees()


class Tuning(Record):
    """A frozen model with adapters: the precision of the layout is theirs."""

    rank: int
    targets: tuple[str, ...]  # none: every linear layer of the blocks
    base: Precision
    stored: Quantization | None  # as what its linear layers are, None: as the base


class Layout(Record):
    """All that decides what one GPU holds, but for the model."""

    precision: Precision
    optimizer: Optimizer
    ranks: int  # that ZeRO shares over: data-parallel, and context-parallel
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
    degrees: Degrees = UNDIVIDED
    tuning: Tuning | None = None

    @property
    def weight_bytes(self) -> int:
        """Of the model's, where they are not quantised."""
        return (self.tuning.base if self.tuning else self.precision).weights

    @property
    def world(self) -> int:
        """All ranks."""
        return self.ranks * self.degrees.tp * self.degrees.pp

    @property
    def value_bytes(self) -> int:
        """Of one value of the forward pass."""
        return 2 if self.autocast else self.weight_bytes

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
