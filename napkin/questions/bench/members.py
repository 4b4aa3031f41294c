"""Who takes part in a run of bench: the ranks, what each measures, that all were asked the same."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from napkin.bench import ranks as together
from napkin.bench.ranks import Member, Ranks
from napkin.errors import DeviceError, quoted
from napkin.questions import options

if TYPE_CHECKING:
    from napkin.bench.device import Device


def everyone(ranks: Ranks, device: str | None) -> list[Member]:
    from napkin.bench import device as devices

    def mine() -> "Device":
        if ranks.size == 1:
            return devices.choose(device)
        return devices.of_rank(device, ranks.local_rank, ranks.on_node)

    each = ranks.together(mine)
    members = [Member(rank, ranks.hosts[rank], on) for rank, on in enumerate(each)]
    without = [member for member in members if not member.device.is_gpu]
    if 0 < len(without) < len(members):
        raise DeviceError(f"{without[0]} has no GPU and others have; --device cpu measures CPUs")
    return members


def refuse_numbered(device: str | None) -> None:
    if together.here().size > 1 and device is not None and ":" in device:
        kind = device.partition(":")[0]
        raise options.error("device", f"every rank takes its own; write {kind}, or leave it out")


def refuse_different(ranks: Ranks, asked: Mapping[str, object]) -> None:
    """Figures of different matmuls are no figures of the same step, and the ranks would wait."""
    first, *others = ranks.tell(asked)
    for rank, other in enumerate(others, 1):
        for option in asked:
            if other[option] != first[option]:
                its, the_first = map(_written, (other[option], first[option]))
                differs = f"{its} on rank {rank} and {the_first} on rank 0"
                raise options.error(option, f"{differs}; start every rank with the same options")


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "given" if value else "not given"
    return "not given" if value is None else quoted(value)
