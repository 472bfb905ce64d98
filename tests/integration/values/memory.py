"""Peaks that the script resets are in the report all the same."""

import torch

large = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
del large
torch.cuda.reset_peak_memory_stats()
small = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
small.zero_()
assert torch.cuda.max_memory_allocated() == 1 << 20
