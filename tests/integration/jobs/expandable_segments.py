"""Three steps of SGD with momentum on a weight of 64 MiB; then a tensor that fits in no gap, and all is given back."""

import torch

MIB = 2**20

weight = torch.nn.Parameter(torch.ones(16 * MIB, device="cuda"))
inputs = torch.ones(16 * MIB, device="cuda")
optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
for _ in range(3):
    (weight * inputs).sum().backward()
    optimizer.step()
    optimizer.zero_grad()

torch.cuda.synchronize()
free_bytes, total_bytes = torch.cuda.mem_get_info()
print("reserved", torch.cuda.memory_reserved() // MIB)
print("expandable", all(segment["is_expandable"] for segment in torch.cuda.memory_snapshot()))

larger = torch.empty(100 * MIB, dtype=torch.uint8, device="cuda")
print("larger", torch.cuda.memory_reserved() // MIB)

del weight, inputs, optimizer, larger
torch.cuda.empty_cache()
print("empty", torch.cuda.memory_reserved() // MIB)
print("freed", (torch.cuda.mem_get_info()[0] - free_bytes) // MIB)
