"""Every architecture that is known, by transformers' model_type."""

from napkin.specs.architectures import dense, gpt, moe
from napkin.specs.reader import Reader

READERS: dict[str, Reader] = {
    "llama": dense.llama,
    "mistral": dense.mistral,
    "qwen2": dense.qwen2,
    "qwen3": dense.qwen3,
    "gemma": dense.gemma,
    "gemma2": dense.gemma2,
    "gemma3_text": dense.gemma3_text,
    "phi3": dense.phi3,
    "olmo2": dense.olmo2,
    "gpt2": gpt.gpt2,
    "gpt_neox": gpt.gpt_neox,
    "opt": gpt.opt,
    "mixtral": moe.mixtral,
    "qwen2_moe": moe.qwen2_moe,
    "qwen3_moe": moe.qwen3_moe,
    "gpt_oss": moe.gpt_oss,
    "deepseek_v2": moe.deepseek_v2,
    "deepseek_v3": moe.deepseek_v3,
}
