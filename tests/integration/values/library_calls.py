"""What PyTorch asks of CUDA's math libraries, each on tensors too large to be computed: shapes must come out right.

usage: library_calls.py   (prints one line a case)
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

CASES: list[Callable[[], None]] = []
Case = Callable[[], None]


def case(function: Case) -> Case:
    CASES.append(function)
    return function


def normal(*shape: int, dtype: torch.dtype = torch.float32, grad: bool = False) -> Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype, requires_grad=grad)


def check_gradients(output: Tensor, *leaves: Tensor) -> None:
    output.float().sum().backward()
    for leaf in leaves:
        assert leaf.grad is not None
        assert leaf.grad.shape == leaf.shape


@case
def products() -> None:
    for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.complex64):
        a, b = normal(512, 1024, dtype=dtype), normal(1024, 256, dtype=dtype)
        assert (a @ b).shape == (512, 256)
        assert torch.addmm(normal(256, dtype=dtype), a, b).shape == (512, 256)
        assert torch.bmm(a.expand(3, -1, -1), b.expand(3, -1, -1)).shape == (3, 512, 256)
        assert torch.mv(a, normal(1024, dtype=dtype)).shape == (512,)
        assert functional.linear(normal(2, 8, 1024, dtype=dtype), b.t(), normal(256, dtype=dtype)).shape == (2, 8, 256)


@case
def eight_bit_products() -> None:
    a = torch.zeros(1024, 2048, device="cuda").to(torch.float8_e4m3fn)
    b = torch.zeros(512, 2048, device="cuda").to(torch.float8_e4m3fn).t()
    one = torch.ones((), device="cuda")
    assert torch._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16).shape == (1024, 512)
    rows, columns = torch.ones(1024, 1, device="cuda"), torch.ones(1, 512, device="cuda")
    assert torch._scaled_mm(a, b, rows, columns, out_dtype=torch.bfloat16, use_fast_accum=True).shape == (1024, 512)


@case
def convolutions() -> None:
    for dtype in (torch.float32, torch.bfloat16):
        for layout in (torch.contiguous_format, torch.channels_last):
            x = normal(16, 64, 56, 56, dtype=dtype).to(memory_format=layout).requires_grad_()
            layer = nn.Conv2d(64, 128, 3, stride=2, padding=1).to("cuda", dtype, memory_format=layout)
            y = layer(x)
            assert y.shape == (16, 128, 28, 28)
            check_gradients(y, x, layer.weight)
    x = normal(4, 32, 64, 64, grad=True)
    check_gradients(nn.ConvTranspose2d(32, 16, 4, stride=2).to("cuda")(x), x)


@case
def batch_norm() -> None:
    for layout in (torch.contiguous_format, torch.channels_last):
        x = normal(16, 64, 56, 56).to(memory_format=layout).requires_grad_()
        layer = nn.BatchNorm2d(64).to("cuda")
        check_gradients(layer(x), x, layer.weight)
        layer.eval()
        assert layer(x).shape == x.shape


@case
def attention() -> None:
    backends = (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.MATH)
    for backend in backends:
        for causal in (False, True):
            q, k, v = (normal(2, 16, 512, 128, dtype=torch.bfloat16, grad=True) for _ in range(3))
            with sdpa_kernel(backend):
                output = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
            assert output.shape == q.shape
            check_gradients(output, q, k, v)


@case
def factorisations() -> None:
    a = normal(600, 600)
    assert torch.linalg.solve(a, normal(600, 5)).shape == (600, 5)
    assert torch.linalg.qr(normal(700, 600)).R.shape == (600, 600)
    assert torch.linalg.cholesky(a).shape == (600, 600)
    assert torch.linalg.svd(normal(700, 600), full_matrices=False).S.shape == (600,)
    assert torch.linalg.eigh(a).eigenvalues.shape == (600,)
    assert torch.linalg.inv(a).shape == (600, 600)
    assert torch.linalg.inv(normal(8, 200, 200)).shape == (8, 200, 200)


@case
def fourier() -> None:
    assert torch.fft.rfft(normal(256, 4096)).shape == (256, 2049)
    assert torch.fft.irfft(torch.fft.rfft(normal(256, 4096))).shape == (256, 4096)
    assert torch.fft.fft2(normal(8, 256, 256)).shape == (8, 256, 256)


@case
def recurrent() -> None:
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        x = normal(64, 32, 256, grad=True)
        layer = kind(256, 512, num_layers=2, bidirectional=True, dropout=0.25).to("cuda")
        output = layer(x)[0]
        assert output.shape == (64, 32, 1024)
        check_gradients(output, x, layer.weight_ih_l1_reverse)


@case
def recurrent_weights_keep_their_values() -> None:
    torch.manual_seed(1)
    layer = nn.LSTM(8, 12, num_layers=2, bidirectional=True)
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    layer.to("cuda").flatten_parameters()
    for name, value in layer.state_dict().items():
        assert torch.equal(value.cpu(), before[name]), name


@case
def run_time_compiled() -> None:
    assert torch.special.bessel_j0(normal(512, 512)).shape == (512, 512)


if __name__ == "__main__":
    for each in CASES:
        each()
        torch.cuda.synchronize()
        print("passed", each.__name__, flush=True)
