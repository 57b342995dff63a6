"""CUDA: whether it builds, and what the device code is like."""
