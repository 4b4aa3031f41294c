"""What is known about things: accelerators, models, precisions, optimizers, and their files."""
