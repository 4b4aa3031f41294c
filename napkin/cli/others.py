"""What other tools call options that napkin has too: transformers, DeepSpeed, Megatron-LM,
torchtitan, vLLM and people."""

from collections.abc import Collection

# napkin's option -> the others' names; the first of these that a command has is what is meant.
NAMES = {
    "micro_batch": "batch-size bs mbs micro-batch-size per-device-train-batch-size "
    "train-micro-batch-size-per-gpu train-batch-size local-batch-size device-batch-size",
    "batch": "batch-size bs max-num-seqs concurrency num-seqs",
    "global_batch": "global-batch-size gbs train-batch-size batch-size tokens-per-batch",
    "grad_accum": "gradient-accumulation-steps gradient-accumulation accumulate-grad-batches "
    "grad-accumulation gas accumulation-steps",
    "recompute": "gradient-checkpointing activation-checkpointing activation-checkpoint "
    "checkpointing recompute-granularity recompute-activations ac checkpoint-activations remat",
    "zero": "fsdp zero-stage deepspeed stage sharding-strategy use-distributed-optimizer",
    "precision": "dtype fp16 bf16 fp32 mixed-precision torch-dtype quantization load-in-4bit "
    "load-in-8bit param-dtype quantize",
    "dtype": "precision fp16 bf16 fp8 fp32 tf32 mixed-precision torch-dtype quantize",
    "gpus": "num-gpus n-gpus ngpus gpu-count world-size devices nodes nnodes nproc-per-node "
    "num-nodes n-gpu gpu",
    "hardware": "gpu gpu-type gpu-name device-type accelerator device card chip gpu-model",
    "seq_len": "max-seq-len max-seq-length context-length context block-size sequence-length "
    "max-length seq-length seqlen max-position-embeddings ctx max-model-len seq",
    "context": "max-model-len context-length max-seq-len sequence-length ctx max-length",
    "params": "num-params n-params model-size size parameters num-parameters param-count",
    "model": "model-name model-name-or-path model-id hf-model pretrained-model",
    "tokens": "num-tokens n-tokens dataset-size train-tokens total-tokens dataset",
    "optimizer": "optim optimizer-type use-adam",
    "attention": "attn-implementation flash-attention flash-attn attn use-flash-attn sdpa",
    "inference": "kv-cache serve serving infer generate",
    "tokens_per_second": "throughput tps tokens-per-sec tok-per-sec toks",
    "step_time": "iteration-time iter-time time-per-step step-ms",
    "mfu": "utilization efficiency model-flops-utilization",
    "price": "cost cost-per-hour price-per-hour hourly-cost dollars-per-hour",
    "time": "days hours duration wall-time",
    "memory": "vram gpu-memory mem hbm memory-per-gpu",
    "reserve": "overhead headroom gpu-memory-utilization",
    "tp": "tensor-parallel tensor-parallel-size tensor-model-parallel-size tensor-parallel-degree",
    "pp": "pipeline-parallel pipeline-parallel-size pipeline-model-parallel-size "
    "pipeline-parallel-degree",
    "cp": "context-parallel context-parallel-size context-parallel-degree",
    "ep": "expert-parallel expert-parallel-size expert-model-parallel-size expert-parallel-degree",
    "sequence_parallel": "sp",
    "virtual_stages": "vpp virtual-pipeline-model-parallel-size num-virtual-stages",
    "lora_rank": "lora lora-r rank lora-dim peft qlora",
    "lora_targets": "target-modules lora-target-modules lora-target",
    "quantize": "load-in-4bit load-in-8bit quantization bnb-4bit-quant-type qlora",
    "double_quant": "bnb-4bit-use-double-quant",
    "chunked_loss": "liger cut-cross-entropy fused-cross-entropy fused-linear-cross-entropy",
    "explain": "verbose show-work derivation steps",
    "format": "json output-format csv markdown",
    "output": "save out file",
}
# What they say without a value, with the value that napkin takes for it.
VALUES = {
    "recompute": {"full": NAMES["recompute"]},
    "zero": {"3": "fsdp", "1": "use-distributed-optimizer"},
    "precision": {"amp": "fp16 bf16", "nf4": "load-in-4bit", "int8": "load-in-8bit"},
    "quantize": {"nf4": "load-in-4bit", "int8": "load-in-8bit"},
    "dtype": {word: word for word in ("fp16", "bf16", "fp8", "fp32", "tf32")},
    "attention": {"flash": "flash-attention flash-attn use-flash-attn", "sdpa": "sdpa"},
    "format": {word: word for word in ("json", "csv", "markdown")},
}


def _word(name: str) -> str:
    return name.lstrip("-").casefold().replace("_", "-")


def meant(name: str, known: Collection[str]) -> str | None:
    """The option of `known` that another tool calls so, as it is typed."""
    word = _word(name)
    options = (option for option, names in NAMES.items() if word in names.split())
    found = next((option for option in options if option in known), None)
    if found is None:
        return None
    values = VALUES.get(found, {}).items()
    value = next((value for value, words in values if word in words.split()), "")
    return f"--{found.replace('_', '-')} {value}".rstrip()
