"""Allocates so many GiB of device memory at once."""

import sys

import torch

block = torch.empty(int(sys.argv[1]), 2**30, dtype=torch.uint8, device="cuda")
print(f"allocated {block.nbytes} bytes")
