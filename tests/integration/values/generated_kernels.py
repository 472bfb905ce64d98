"""What Triton's and Inductor's kernels write is unknown; what they only read and what lies beside it stays true."""

import torch
import triton
import triton.language as tl
from torch.nn.attention.flex_attention import create_block_mask, flex_attention


@triton.jit
def store_one(to, at):
    tl.store(to + at, 1.0)


@triton.jit
def scale(x, out, n, factor: tl.constexpr, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + at, tl.load(x + at, mask=at < n) * factor, mask=at < n)
    store_one(out, 0)


def is_zero(x: torch.Tensor) -> bool:
    return not x.flatten()[:64].cpu().any().item()


# All of these share one segment of the caching allocator.
before, x, out, after = (torch.full((1000,), float(i + 1), device="cuda") for i in range(4))
scale[(4,)](x, out, 1000, factor=2.0, block=256)
assert is_zero(out)
assert (before[999].item(), x[999].item(), after[0].item()) == (1.0, 2.0, 4.0)
assert out.fill_(7.0)[5].item() == 7.0

# A tensor that Inductor allocates in a block that held known values.
numbers = torch.arange(2000, device="cuda", dtype=torch.float32)
gates = torch.rand(2000, device="cuda")
compiled = torch.compile(lambda a, b: torch.sigmoid(a) * b + 3)
stale = torch.full((2000,), 5.0, device="cuda")
where = stale.data_ptr()
del stale
result = compiled(numbers, gates)
assert result.data_ptr() == where
assert is_zero(result)
assert numbers[1999].item() == 1999.0

mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 1024, 1024, device="cuda")
heads = [torch.randn(2, 8, 1024, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]
torch.compile(flex_attention)(*heads, block_mask=mask).sum().backward()
assert mask.kv_num_blocks.sum().item() > 0
