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
    "num-nodes n-gpu gpu tensor-parallel-size",
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
    "lora_rank": "lora lora-r rank lora-dim",
    "double_quant": "bnb-4bit-use-double-quant",
    "chunked_loss": "liger cut-cross-entropy fused-cross-entropy fused-linear-cross-entropy",
    "explain": "verbose show-work derivation steps",
    "format": "json output-format csv markdown",
    "output": "save out file",
}


def meant(name: str, known: Collection[str]) -> str | None:
    """The option of `known` that another tool calls so, as it is typed."""
    word = name.lstrip("-").casefold().replace("_", "-")
    options = (option for option, names in NAMES.items() if word in names.split())
    found = next((option for option in options if option in known), None)
    return None if found is None else "--" + found.replace("_", "-")
