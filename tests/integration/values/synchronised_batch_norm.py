"""SyncBatchNorm on several ranks gives what BatchNorm gives for all of their inputs at once."""

import os

import torch
import torch.distributed as dist
from comparing import numbers
from torch import nn

RANK = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(RANK)
dist.init_process_group("nccl", device_id=torch.device("cuda", RANK))
WORLD = dist.get_world_size()

whole = numbers(3 * WORLD, 4, 5, 5)("cpu")
expected = nn.BatchNorm2d(4)
part = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm2d(4)).to("cuda")
mine = slice(3 * RANK, 3 * RANK + 3)
for step in range(3):
    x = (whole + step).requires_grad_()
    y = (whole[mine] + step).cuda().requires_grad_()
    expected(x).mul(whole).sum().backward()
    part(y).mul(whole[mine].cuda()).sum().backward()
    torch.testing.assert_close(y.grad.cpu(), x.grad[mine], rtol=1e-4, atol=1e-5)
for a, b in ((part.running_mean, expected.running_mean), (part.running_var, expected.running_var)):
    torch.testing.assert_close(a.cpu(), b, rtol=1e-4, atol=1e-5)
sums = torch.stack([part.weight.grad, part.bias.grad])
dist.all_reduce(sums)
torch.testing.assert_close(sums.cpu(), torch.stack([expected.weight.grad, expected.bias.grad]), rtol=1e-4, atol=1e-4)

# Of a batch that is too large to compute, how many elements each rank has is still known: all ranks count.
part(torch.empty(64, 4, 64, 64, device="cuda")).sum().backward()
dist.destroy_process_group()
