"""One line per question that works as written: for help, the bare command and error messages."""

TRAIN_TIME = "napkin train-time --params 70e9 --tokens 15e12 --gpus 1024"
MAX_MODEL = "napkin max-model --gpus 8"
MFU = "napkin mfu --params 6.738e9 --tokens-per-second 9600 --gpus 1"
FLOPS = "napkin flops --model llama-3-8b --seq-len 8192"
MODELS = "napkin models llama-3-8b"
HARDWARE = "napkin hardware h100-sxm"
BENCH = "napkin bench --dtype bf16"
