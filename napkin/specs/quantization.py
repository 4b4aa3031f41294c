"""What a file's quantization_config says: how many bits, of which modules.

The methods' fields are those of transformers 5.24's quantization configs; their scales as
bitsandbytes, AutoGPTQ, AutoAWQ, OCP MX and compressed-tensors store them.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from napkin.errors import printable
from napkin.record import Record
from napkin.specs.config import Config
from napkin.specs.dtypes import BITS, NF4_DOUBLE

FIELD = "quantization_config"
OLD_FIELD = "compression_config"  # as the first files of compressed-tensors say
# bitsandbytes and transformers' MXFP4 know their own layers alone; others split experts too.
LINEARS, EXPERTS = "linears", "experts"
BITSANDBYTES = ("nf4", "int8")
MOST_BITS = 16  # of a weight that is quantised
MOST_REPEATS = 4  # of a pattern, each of which multiplies the time that it may take
SCALE = 16  # bits of a group's in GPTQ, AWQ and compressed-tensors
KEPT = ("modules_to_not_convert", "llm_int8_skip_modules", "ignored_layers", "ignore")


class Quantization(Record):
    """How the weights of a file's linear layers are stored."""

    method: str
    precision: str = ""
    bits: float = 0  # of a weight, its scales in it
    of: tuple[str, ...] = (LINEARS, EXPERTS)
    kept: tuple[str, ...] = ()  # modules that stay as they are
    double: bool = False
    problem: str = ""  # why it was not read

    def converter(self) -> Callable[[str], bool]:
        """Whether it quantises a module of that name: by transformers' rule
        (should_convert_module), and compressed-tensors' for a pattern that begins with `re:`.
        A file may name it as a bare model or as one part of several does."""
        plain = frozenset(name for name in self.kept if re.fullmatch(r"[\w.]+", name))
        patterns = [_pattern(name) for name in self.kept if name not in plain]

        def is_kept(module: str) -> bool:
            # From the start up to a dot, or the end of it from anywhere.
            starts = (module[:i] for i, letter in enumerate(module) if letter == ".")
            ends = (module[i:] for i in range(len(module)))
            if not (plain.isdisjoint(starts) and plain.isdisjoint(ends)):
                return True
            return any(pattern.match(module) for pattern in patterns)

        def converts(module: str) -> bool:
            bare = module.partition(".")[2]
            parts = (f"language_model.{module}", f"model.language_model.{bare}")
            return not any(map(is_kept, (module, bare, *parts)))

        return converts


def _pattern(name: str) -> re.Pattern[str]:
    if name.startswith("re:"):
        return re.compile(name[3:])
    return re.compile(rf"(?:{name})(?:(?<=\.)|(?=\.|$))")


def asked(precision: str, double: bool) -> Quantization:
    """A precision that is asked for: of 4 and 8 bits as bitsandbytes does it, which leaves
    experts in one tensor as they are; of the others with the experts."""
    which = (LINEARS,) if precision in BITSANDBYTES else (LINEARS, EXPERTS)
    return Quantization(
        "", precision, NF4_DOUBLE if double else BITS[precision], which, double=double
    )


def of(config: Config, experts: bool) -> Quantization | None:
    """None where the file says nothing of it; `experts`: whether its model has any.

    Raises NapkinError.
    """
    field = FIELD if config.has(FIELD) else OLD_FIELD
    fields = config.fields.get(field)
    if fields is None:
        return None
    if not isinstance(fields, dict):
        raise config.error(field, "is not an object")
    method = fields.get("quant_method") or ("bitsandbytes" if _in_bits(fields) else "")
    name = printable(method)[:60] or "no quant_method"
    reader = READERS.get(method) if isinstance(method, str) else None
    if reader is None:
        return Quantization(name, problem="napkin does not know this method")
    try:
        found = reader(fields).replace(method=name, kept=_kept(fields))
        if found.of == (EXPERTS,) and not experts:
            raise ValueError("it is of experts, and there are none")
        if found.bits >= MOST_BITS:
            raise ValueError("its scales make a weight no smaller")
        return found
    except ValueError as error:
        return Quantization(name, problem=str(error))


def _in_bits(fields: Mapping[str, Any]) -> bool:
    return "load_in_4bit" in fields or "load_in_8bit" in fields


def _kept(fields: Mapping[str, Any]) -> tuple[str, ...]:
    found = []
    for field in KEPT:
        names = fields.get(field) or []
        if not isinstance(names, list):
            raise ValueError(f"its {field} is no list")
        found += names
    for name in found:
        if not isinstance(name, str):
            raise ValueError("a module that it leaves out is no name")
        try:
            _pattern(name)
        except re.error:
            raise ValueError("it leaves out a module by no valid pattern") from None
        if re.search(r"\)[*+{]", name) or len(re.findall(r"[*+{]", name)) > MOST_REPEATS:
            raise ValueError("it leaves out a module by a pattern that may take for ever")
    return tuple(found)


def _whole(fields: Mapping[str, Any], name: str, default: int | None = None) -> int:
    value = fields.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"its {name} is no whole number")
    return value


def _plain(name: str, extra: float = 0) -> Quantization:
    return Quantization("", name, BITS[name] + extra)


def _bitsandbytes(fields: Mapping[str, Any]) -> Quantization:
    if fields.get("load_in_8bit") is True:
        return _plain("int8").replace(of=(LINEARS,))
    if fields.get("load_in_4bit") is not True:
        raise ValueError("it loads neither 8 nor 4 bits")
    name = fields.get("bnb_4bit_quant_type", "fp4")
    if name not in ("nf4", "fp4"):
        raise ValueError("its bnb_4bit_quant_type is neither nf4 nor fp4")
    double = fields.get("bnb_4bit_use_double_quant") is True
    return Quantization("", name, NF4_DOUBLE if double else BITS["nf4"], (LINEARS,), double=double)


def _fp8(fields: Mapping[str, Any]) -> Quantization:
    block = fields.get("weight_block_size")
    if block is None:
        return _plain("fp8")
    if not (isinstance(block, list) and len(block) == 2 and all(type(n) is int for n in block)):
        raise ValueError("its weight_block_size is no pair of whole numbers")
    if min(block) < 1:
        raise ValueError("its weight_block_size is less than 1")
    return _plain("fp8", 32 / (block[0] * block[1]))


def _groups(fields: Mapping[str, Any]) -> Quantization:
    """GPTQ and AWQ: a scale and a zero for each group."""
    bits, group = _whole(fields, "bits"), _whole(fields, "group_size", 128)
    if bits not in (4, 8):
        raise ValueError(f"{bits} bits are not counted")
    if fields.get("lm_head") is True:
        raise ValueError("it quantises the head too")
    for field in ("modules_in_block_to_quantize", "dynamic"):
        if fields.get(field):
            raise ValueError(f"its {field} sets some modules apart")
    return _plain(f"int{bits}", (SCALE + bits) / group if group > 0 else 0)


def _mxfp4(fields: Mapping[str, Any]) -> Quantization:
    if fields.get("dequantize") is True:
        raise ValueError("its dequantize makes 16 bits of them")
    return _plain("mxfp4").replace(of=(EXPERTS,))


def _compressed_tensors(fields: Mapping[str, Any]) -> Quantization:
    sparse = fields.get("sparsity_config") or {}
    if not isinstance(sparse, dict) or sparse.get("format", "dense") != "dense":
        raise ValueError("its sparsity_config leaves out zeros")
    groups = fields.get("config_groups")
    if not isinstance(groups, dict) or len(groups) != 1:
        raise ValueError("it has not one group of settings")
    (group,) = groups.values()
    weights = group.get("weights") if isinstance(group, dict) else None
    if not isinstance(weights, dict) or group.get("targets") != ["Linear"]:
        raise ValueError("its group is not of all linear layers")
    bits, size = _whole(weights, "num_bits"), weights.get("group_size")
    name = {(8, "float"): "fp8", (8, "int"): "int8", (4, "int"): "int4"}
    found = name.get((bits, str(weights.get("type", "int"))))
    if found is None or weights.get("strategy") not in ("tensor", "channel", "group"):
        raise ValueError("its kind of weights is not counted")
    if weights["strategy"] != "group":
        return _plain(found)
    zero = 0 if weights.get("symmetric", True) else bits
    group_size = _whole(weights, "group_size")
    if group_size < 1:
        raise ValueError(f"its group_size is {size}")
    return _plain(found, (SCALE + zero) / group_size)


READERS = {
    "bitsandbytes": _bitsandbytes,
    "fp8": _fp8,
    "fbgemm_fp8": _fp8,
    "gptq": _groups,
    "awq": _groups,
    "mxfp4": _mxfp4,
    "compressed-tensors": _compressed_tensors,
}
