"""Gradients of operators that save something for their backward pass, which need not be the same on CPU and GPU."""

from collections.abc import Callable

import torch
from comparing import numbers, same_gradients
from torch import linalg
from torch.nn import functional

square, image = numbers(5, 5), numbers(2, 4, 8, 8)


def indices(*shape: int, below: int) -> Callable[[str], torch.Tensor]:
    values = numbers(*shape, seed=4, dtype=torch.int64)
    return lambda device: values(device).abs() % below


# Bags of 4, 3 and 5 rows.
table, words, weights = numbers(20, 6), indices(12, below=20), numbers(12, seed=1)
for mode in ("sum", "mean", "max"):
    for begins, last in (([0, 4, 7], False), ([0, 4, 4, 7, 12], True)):
        for padding in (None, 3):

            def bag(table, words, mode=mode, begins=begins, last=last, padding=padding):
                offsets = torch.tensor(begins, device=words.device)
                return functional.embedding_bag(
                    words, table, offsets, mode=mode, include_last_offset=last, padding_idx=padding
                )

            same_gradients(bag, table, words)
    same_gradients(lambda t, w, mode=mode: functional.embedding_bag(w.view(3, 4), t, mode=mode), table, words)


def weighted(table: torch.Tensor, words: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    offsets = torch.tensor([0, 4, 7], device=words.device)
    return functional.embedding_bag(words, table, offsets, mode="sum", per_sample_weights=weights)


same_gradients(weighted, table, words, weights)
same_gradients(lambda t, w: functional.embedding(w, t, scale_grad_by_freq=True), table, words)

# Chosen elements.
same_gradients(lambda x: functional.max_pool2d(x, 3, 2, 1), image)
same_gradients(lambda x: functional.max_pool3d(x, 2), image)
same_gradients(lambda x: functional.adaptive_max_pool2d(x, 3), image)
same_gradients(lambda x: functional.adaptive_max_pool3d(x, 2), image)
same_gradients(lambda x: functional.max_unpool2d(*functional.max_pool2d(x, 2, return_indices=True), 2), image)
samples = numbers(2, 4, 2)
same_gradients(
    lambda x, s: functional.fractional_max_pool2d(x, 2, 3, _random_samples=s.detach().sigmoid()) + 0 * s.sum(),
    image,
    samples,
)
same_gradients(lambda x: x.kthvalue(2, 1)[0], square)
same_gradients(lambda x: x.round().mode(1)[0] * x.sum(1), square)
same_gradients(lambda x: x.median(1)[0] + x.cummax(0)[0].sum(1) + x.cummin(0)[0].sum(1), square)
same_gradients(lambda x: x.sort(1)[0] * x.topk(5)[0], square)
same_gradients(lambda x, i: x[i.unique(return_inverse=True)[1] % 5], square, words)

# Normalised.
for training in (True, False):
    for shape in ((6, 3), (2, 3, 4, 4)):

        def normalised(x, w, training=training):
            mean, variance = torch.full((3,), 0.3, device=x.device), torch.full((3,), 2.0, device=x.device)
            return functional.batch_norm(x, mean, variance, w, None, training) + mean.sum() + variance.sum()

        same_gradients(normalised, numbers(*shape), numbers(3))
same_gradients(lambda x: functional.batch_norm(x, None, None, training=True), image)
same_gradients(lambda x: functional.instance_norm(x), image)
same_gradients(lambda x, w: functional.group_norm(x, 2, w), image, numbers(4))
same_gradients(lambda x, w: functional.layer_norm(x, (8,), w), image, numbers(8))
same_gradients(lambda x, w: functional.rms_norm(x, (8,), w), image, numbers(8))
same_gradients(lambda x: torch._weight_norm(x, x.norm(2, 1, True), 0), square)
same_gradients(lambda q, k: functional.scaled_dot_product_attention(q, k, k), image, numbers(2, 4, 8, 8, seed=1))

# Losses.
labels = indices(5, below=5)
for reduction in ("mean", "sum", "none"):
    same_gradients(
        lambda x, t, w, r=reduction: (
            functional.nll_loss(x, t, w.detach().abs(), ignore_index=2, reduction=r) + 0 * w.sum()
        ),
        square,
        labels,
        numbers(5),
    )
    same_gradients(lambda x, t, r=reduction: functional.multi_margin_loss(x, t, reduction=r), square, labels)
    same_gradients(
        lambda x, t, r=reduction: functional.multilabel_margin_loss(x, t.repeat(5, 1).sort(1)[0], reduction=r),
        square,
        labels,
    )
    same_gradients(
        lambda x, t, r=reduction: functional.ctc_loss(x.log_softmax(-1), t, (6, 8), (3, 2), reduction=r),
        numbers(8, 2, 5),
        lambda device: torch.tensor([[1, 2, 2], [3, 4, 1]], device=device),
    )
same_gradients(lambda x, t: functional.cross_entropy(x, t, label_smoothing=0.1), square, labels)

# Others with a buffer, a mask or a factorisation of their own.
same_gradients(lambda x: functional.logsigmoid(x) + functional.rrelu(x) + functional.glu(x.repeat(1, 2)), square)
same_gradients(lambda x, w: functional.prelu(x, w), image, numbers(4))
same_gradients(lambda x, g: functional.grid_sample(x, g, align_corners=False), image, numbers(2, 3, 3, 2))
same_gradients(lambda x: torch.segment_reduce(x, "max", lengths=torch.tensor([2, 3], device=x.device)), square)
same_gradients(lambda x: x.prod(1) + x.cumprod(1).sum(1) + x.logcumsumexp(1).sum(1) + x.logsumexp(1), square)
same_gradients(lambda x: torch.cdist(x, x.flip(0)), square)
same_gradients(lambda x: linalg.svdvals(x) + linalg.eigvalsh(x + x.T) + linalg.slogdet(x)[1], square)
same_gradients(
    lambda x: linalg.inv(x) + linalg.qr(x)[1].abs() + linalg.cholesky(x @ x.T + x.new_ones(5).diag()), square
)
same_gradients(lambda x: linalg.eig(x + x.T)[0].real.sort()[0], square)
same_gradients(lambda x: linalg.eigvals(x).abs().sum() + linalg.solve(x, x.T).sum() + linalg.pinv(x).sum(), square)


def dropped(device: str) -> None:
    """Which elements are dropped is the device's own choice, the same both ways."""
    x = torch.ones(64, 8, device=device, requires_grad=True)
    y = functional.dropout(x, 0.25)
    y.sum().backward()
    assert torch.equal(x.grad, y)
    assert 0 < (y == 0).sum().item() < y.numel()


dropped("cuda")
