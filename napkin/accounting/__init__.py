"""The formulas: quantities in, a quantity out; no options, no files, no printing."""
