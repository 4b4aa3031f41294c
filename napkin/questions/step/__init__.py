"""What one training step keeps on a GPU, and when; for `memory`."""
