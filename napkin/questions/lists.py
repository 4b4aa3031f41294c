"""Which options take several values, and in which questions: help too is to know."""

LISTS = (
    *("params", "tokens", "gpus", "hardware", "mfu", "dtype", "seq_len", "micro_batch"),
    *("zero", "optimizer", "precision", "recompute"),
)
# In bench a list is several runs of its own; no other question computes.
CALCULATORS = (
    *("train_time", "max_model", "mfu", "memory", "flops"),
    *("tensor", "matmul", "data", "checkpoint"),
)
ALL = "all"  # of --hardware
