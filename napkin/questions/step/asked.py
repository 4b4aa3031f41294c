"""What `memory` is asked: the settings, and the model or its parameters."""

from dataclasses import dataclass, replace
from typing import Any

from napkin.quantity import Quantity
from napkin.questions.answer import Inputs
from napkin.questions.room import TIGHT, Room
from napkin.questions.step import phases
from napkin.questions.step.phases import Step
from napkin.questions.step.states import Setup
from napkin.specs.model import Model, Stack


@dataclass(frozen=True, slots=True)
class Asked:
    """One scenario."""

    about: Model | Stack | None
    N: Quantity
    setup: Setup
    room: Room
    precision: str
    optimizer: str
    gpus: int
    inputs: Inputs

    def step(self) -> Step:
        """What follows from it. Raises NapkinError."""
        source = f"--precision {self.precision} --optimizer {self.optimizer}"
        if self.about is None:
            return phases.states_alone(self.N, self.setup, source)
        if isinstance(self.about, Stack):
            return phases.of_stack(self.about, self.N, self.setup, source)
        return phases.of_transformer(self.about, self.N, self.setup, source)

    def on(self, gpus: int, zero: int) -> "Asked":
        """The same on other GPUs."""
        setup = replace(self.setup, ranks=gpus * self.room.devices, zero=zero)
        return replace(self, setup=setup, gpus=gpus, inputs=self.inputs | {"gpus": gpus})

    @property
    def fits(self) -> bool:
        """Tightly too."""
        return self.room.holds(self.step().peak.bytes)

    @property
    def tightly(self) -> str:
        """What to add to a word that it fits."""
        return ", tightly" if self.room.verdict(self.step().peak.bytes) == TIGHT else ""

    def changed(self, name: str, value: Any) -> "Asked":
        """The same with another micro-batch or sequence length."""
        setup = replace(self.setup, **{name: value})
        return replace(self, setup=setup, inputs=self.inputs | {name: value})
