"""How many of a model's weights a quantisation converts: linear layers of its blocks alone."""

from functools import lru_cache

from napkin.accounting.matmuls import Matmul, matmuls
from napkin.specs.architectures import modules
from napkin.specs.model import Model
from napkin.specs.quantization import EXPERTS, LINEARS, Quantization

# Table and head stay as they are; transformers' routers are no linear layers.
NEVER = ("head", "router")
BESIDE_EXPERTS = ("up_e", "down_e", "up_s", "down_s", "gate_s")


@lru_cache(maxsize=256)
def quantised(model: Model, how: Quantization) -> int:
    """In param."""
    return sum(_of(model, each, how) for each in matmuls(model) if each.symbol not in NEVER)


def _of(model: Model, each: Matmul, how: Quantization) -> int:
    if (EXPERTS if each.of_experts else LINEARS) not in how.of:
        return 0
    weights = each.inputs * each.outputs
    if each.of_experts and model.experts is not None:
        weights *= model.experts.count
    if not how.kept:
        return each.often * weights
    converts = how.converter()
    if each.symbol in modules.OUTSIDE:
        return weights * converts(modules.OUTSIDE[each.symbol])
    layers = _layers(model, each)
    names = [modules.of_layer(model.architecture, each.symbol, layer) for layer in layers]
    times = each.often // sum(map(len, names))  # gate and up of all experts are one module
    return times * weights * sum(converts(name) for of_layer in names for name in of_layer)


def _layers(model: Model, each: Matmul) -> range:
    """Those that have it; a model with both has its dense layers first, as DeepSeek's."""
    if each.symbol in BESIDE_EXPERTS:
        return range(model.dense_layers, model.layers)
    if each.symbol in ("up", "down"):
        return range(model.dense_layers)
    return range(model.layers)
