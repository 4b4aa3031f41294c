"""What follows from a model's shape: its parameters, its matmuls, its FLOP."""
