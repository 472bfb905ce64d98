"""Small tensors hold true values, whatever is done to them, and nothing that is read counts as unknown."""

from collections.abc import Callable

import torch
from comparing import numbers, same

i, f, g = numbers(7, 9, dtype=torch.int64), numbers(7, 9), numbers(7, 9, seed=1)

# Made, moved, indexed.
same(lambda d: torch.arange(10, device=d))
same(lambda d: torch.linspace(0, 1, 7, device=d))
same(lambda d: torch.eye(4, device=d))
same(lambda d: torch.tril(torch.ones(5, 5, device=d)))
same(lambda d: i(d).t().contiguous())
same(lambda d: i(d)[2:5, ::2])
same(lambda d: i(d)[:, [1, 3]])
same(lambda d: f(d)[i(d) > 10])
same(lambda d: torch.cat([f(d), g(d)], dim=1).split(4, dim=1))
same(lambda d: torch.where(i(d) > 0, f(d), g(d)))
same(lambda d: f(d).gather(1, i(d).abs() % 9))
same(lambda d: torch.zeros(7, 50, device=d).scatter_(1, i(d).abs() % 50, 1.0))
same(lambda d: i(d).tolist())
same(lambda d: i(d).max().item())
same(lambda d: f(d).to(torch.int32).float().double())
same(lambda d: torch.equal(i(d), i(d).clone()))
same(lambda d: torch.equal(i(d), i(d) + 1))

# Ordered, counted, selected: sizes follow from values.
same(lambda d: i(d).cumsum(1))
same(lambda d: i(d).sort(dim=1, stable=True))
same(lambda d: f(d).topk(3))
same(lambda d: f(d).argmax(1))
same(lambda d: i(d).nonzero())
same(lambda d: (i(d) > 10).nonzero(as_tuple=True))
same(lambda d: i(d).masked_select(i(d) > 10))
same(lambda d: i(d).unique(return_inverse=True, return_counts=True))
same(lambda d: i(d).unique(dim=1))
same(lambda d: i(d).sort()[0].unique_consecutive(return_counts=True))
same(lambda d: torch.bincount(i(d).abs().flatten()))
same(lambda d: torch.histc(f(d), bins=8))
same(lambda d: torch.repeat_interleave(torch.arange(3, device=d), torch.tensor([2, 0, 3], device=d)))
same(lambda d: torch.searchsorted(torch.arange(0, 50, 7, device=d), i(d)))

# Compared, reduced.
same(lambda d: [(f(d) < g(d)), (i(d) == 3).any(), (i(d) < 100).all(), torch.isfinite(f(d)).all()])
same(lambda d: [f(d).sum(), f(d).mean(0), f(d).var(1), f(d).norm(), f(d).logsumexp(1), f(d).amax(0), f(d).prod(1)])
same(lambda d: torch.allclose(f(d), f(d) + 1e-9))

# Changed in place, through views, by operators that read what they write.
same(lambda d: f(d).add_(5).mul_(2).clamp_(-3, 9))
same(lambda d: i(d).masked_fill_(i(d) < 0, 7))


def write_through_a_view(device: str) -> torch.Tensor:
    x = i(device)
    x[2:5, ::2] += 3
    x[x > 40] = -1
    x[0].zero_()
    x.diagonal().fill_(5)
    x.index_add_(0, torch.tensor([1, 1, 2], device=device), torch.ones(3, 9, dtype=torch.int64, device=device))
    x.index_put_((torch.tensor([0, 0], device=device),), torch.tensor(2, device=device), accumulate=True)
    return x


same(write_through_a_view)


def write_into_given(device: str) -> torch.Tensor:
    out = torch.empty(0, device=device)
    torch.add(f(device), g(device), out=out)
    torch.mul(out, 2, out=out)
    return out


same(write_into_given)

# Neural.
same(lambda d: torch.nn.functional.layer_norm(f(d), (9,)))
same(lambda d: torch.nn.functional.rms_norm(f(d), (9,)))
same(lambda d: torch.nn.functional.cross_entropy(f(d), i(d)[:, 0].abs() % 9))
same(lambda d: torch.nn.functional.embedding(i(d).abs(), numbers(51, 4, seed=2)(d)))
same(lambda d: f(d).t() @ g(d))
same(lambda d: torch.addmm(numbers(9)(d), f(d).t(), g(d)))
same(lambda d: torch.nn.functional.conv2d(numbers(1, 2, 8, 8)(d), numbers(3, 2, 3, 3, seed=3)(d), padding=1))

# Every kind of number.
for dtype in (torch.bfloat16, torch.float16, torch.float64, torch.complex64, torch.float8_e4m3fn, torch.float8_e5m2):
    x = numbers(5, 6, dtype=dtype)
    same(lambda d, x=x: x(d).to(torch.complex128).real)
for dtype in (torch.bfloat16, torch.float16, torch.float64, torch.complex64):
    x = numbers(5, 6, dtype=dtype)
    same(lambda d, x=x: (x(d) * 2 + x(d)).sum())
for dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32):
    x = numbers(5, 6, dtype=dtype)
    same(lambda d, x=x: (x(d) + x(d), x(d) == x(d)))


def rotary(device: str) -> torch.Tensor:
    """Positions as complex rotations, as Llama has them."""
    angles = torch.outer(torch.arange(5, device=device).float(), 1.0 / 10 ** (torch.arange(4, device=device) / 4))
    rotations = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(numbers(5, 4, 2)(device))
    return torch.view_as_real(pairs * rotations.conj())


same(rotary)


def device_ms(work: Callable[[], torch.Tensor]) -> float:
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(2_000_000)  # or the host would be what is measured
    begin.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)


# An index costs what it picks, which depends on the dimension at which it stands.
x, picked = torch.ones(16, 64, 64, device="cuda"), torch.arange(16, device="cuda").repeat(8)
assert device_ms(lambda: x[:, picked]) == device_ms(lambda: x.index_select(1, picked))
assert device_ms(lambda: x[:, picked]) < device_ms(lambda: x[picked])

print(f("cuda")[0], i("cuda"))
