"""What autograd saves of a forward pass."""

from collections.abc import Callable

import torch


def bytes_saved(model: torch.nn.Module, run: Callable[[], object]) -> int:
    """Of distinct tensors, the model's own and whole numbers apart."""
    own = {each.untyped_storage().data_ptr() for each in [*model.parameters(), *model.buffers()]}
    kept: dict[int, int] = {}
    alive = []  # a freed tensor's place could be another's

    def note(tensor: torch.Tensor) -> torch.Tensor:
        place = tensor.untyped_storage().data_ptr()
        if (tensor.is_floating_point() or tensor.is_complex()) and place not in own:
            kept[place] = tensor.untyped_storage().nbytes()
            alive.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        run()
    return sum(kept.values())
