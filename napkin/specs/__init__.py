"""What is known about things: accelerators, precisions, optimizers, and the files that say so."""
