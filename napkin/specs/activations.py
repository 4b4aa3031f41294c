"""What an activation function keeps for the backward pass."""

# Tensors of its input's size beside its output, which the next matmul keeps anyway; by
# config.json's name, of transformers 5.24's ACT2FN (tests/checking measures them). Those that
# are left out, prelu and xielu, have weights of their own, which nothing here counts.
KEPT = {
    "gelu": 1,
    "gelu_10": 2,
    "gelu_accurate": 4,
    "gelu_fast": 7,
    "gelu_new": 4,
    "gelu_python": 3,
    "gelu_python_tanh": 4,
    "gelu_pytorch_tanh": 1,
    "hardswish": 1,
    "laplace": 1,
    "leaky_relu": 1,
    "linear": 0,
    "mish": 1,
    "quick_gelu": 2,
    "relu": 0,
    "relu2": 1,
    "relu6": 1,
    "sigmoid": 0,
    "silu": 1,
    "sqrtsoftplus": 1,
    "swish": 1,
    "tanh": 0,
}

# Of those that keep no more, whose derivative follows from their output.
BY_OUTPUT = ("relu", "sigmoid", "tanh")
