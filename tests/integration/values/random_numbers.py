"""Random numbers: the same seed gives the same, and their moments are right."""

import torch


def draw(seed: int) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    return [
        torch.randn(50, 50, device="cuda"),
        torch.rand(50, 50, device="cuda"),
        torch.randint(0, 10, (50, 50), device="cuda").float(),
        torch.bernoulli(torch.full((50, 50), 0.3, device="cuda")),
        torch.empty(50, 50, device="cuda").exponential_(2.0),
        torch.nn.functional.dropout(torch.ones(50, 50, device="cuda"), 0.25),
        torch.randn(50, 50, device="cuda", dtype=torch.bfloat16).float(),
    ]


MEANS = [0.0, 0.5, 4.5, 0.3, 0.5, 1.0, 0.0]
DEVIATIONS = [1.0, 12**-0.5, 8.25**0.5, 0.21**0.5, 0.5, (1 / 3) ** 0.5, 1.0]

first, again, other = draw(1), draw(1), draw(2)
for a, b, c, mean, deviation in zip(first, again, other, MEANS, DEVIATIONS, strict=True):
    assert torch.equal(a, b)
    assert not torch.equal(a, c)
    assert abs(a.mean().item() - mean) < 6 * deviation / 50, (a.mean().item(), mean)
    assert abs(a.std().item() - deviation) < 0.1 * deviation, (a.std().item(), deviation)

assert sorted(torch.randperm(100, device="cuda").tolist()) == list(range(100))
assert not torch.equal(torch.rand(9, device="cuda"), torch.rand(9, device="cuda"))

generator = torch.Generator("cuda").manual_seed(7)
mine = torch.rand(9, device="cuda", generator=generator)
torch.manual_seed(3)
on_cpu = torch.rand(3)
torch.manual_seed(3)
torch.nn.functional.dropout(torch.ones(9, device="cuda"), 0.5)
assert torch.equal(on_cpu, torch.rand(3)), "drawing on the device disturbs the CPU's generator"
assert torch.equal(mine, torch.rand(9, device="cuda", generator=generator.manual_seed(7)))

state = torch.cuda.get_rng_state()
once = torch.rand(9, device="cuda")
torch.cuda.set_rng_state(state)
assert torch.equal(once, torch.rand(9, device="cuda"))


def masked() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.nn.functional.dropout(torch.ones(200, device="cuda"), 0.5), torch.randn(9, device="cuda")


graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    captured = masked()
torch.manual_seed(11)
eager = [masked() for _ in range(3)]
torch.manual_seed(11)
for expected in eager:
    graph.replay()
    assert all(map(torch.equal, captured, expected)), "a graph draws other numbers than the same ops without it"
