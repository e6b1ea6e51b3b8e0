"""Operators that a program writes with others, exactly: what is seldom used needs no kernel of its own.

Each function has the arguments of the operator, and returns its results, or the first of them.
"""

import math

import torch
from torch.utils._python_dispatch import _disable_current_modes

aten = torch.ops.aten


def of(name):
    """The function for an operator, as "aten::im2col"; None if there is none."""
    return _APART.get(name)


def _exact(x):
    """16 bits as float32, in which torch's kernels of these operators add."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _each(x, n):
    x = list(x)
    return x * n if len(x) == 1 else x


class _Windows:
    """The windows of the last axes: their elements after all axes. What is beyond the padding has another value."""

    def __init__(self, shape, kernel, stride, padding, dilation, ceil=False):
        n = self.n = len(kernel)
        self.kernel, self.dilation, self.padding = kernel, _each(dilation, n), _each(padding, n)
        self.stride, self.beyond = _each(stride or kernel, n), []
        for size, k, s, p, d in zip(shape[-n:], kernel, self.stride, self.padding, self.dilation):
            reach = d * (k - 1) + 1
            count = (size + 2 * p - reach + (s - 1 if ceil else 0)) // s + 1
            if ceil and (count - 1) * s >= size + p:
                count -= 1
            self.beyond.append((count - 1) * s + reach - size - 2 * p)

    def of(self, x, padding, beyond):
        x = self._padded(self._padded(x, [(p, p) for p in self.padding], padding), [(0, b) for b in self.beyond], beyond)
        first = x.dim() - self.n
        for i, (k, s, d) in enumerate(zip(self.kernel, self.stride, self.dilation)):
            x = x.unfold(first + i, d * (k - 1) + 1, s)[..., ::d]
        return x

    @staticmethod
    def _padded(x, sides, value):
        flat = [n for side in reversed(sides) for n in side]
        return aten.constant_pad_nd(x, flat, value) if any(flat) else x


def _im2col(x, kernel_size, dilation, padding, stride):
    w = _Windows(x.shape, kernel_size, stride, padding, dilation).of(x, 0, 0)
    first = x.dim() - 2
    w = w.permute(*range(first), first + 2, first + 3, first, first + 1)
    channels, taps, places = w.shape[first - 1], w.shape[first] * w.shape[first + 1], w.shape[first + 2] * w.shape[first + 3]
    return w.reshape(*w.shape[: first - 1], channels * taps, places)


def _max_pool(n):
    def pool(x, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
        padding, dilation = [[a] if isinstance(a, int) else a for a in (padding, dilation)]
        windows = _Windows(x.shape, _each(kernel_size, n), stride, padding, dilation, ceil_mode)
        w = windows.of(x, float("-inf"), float("-inf")).flatten(-n)
        plane = x.shape[-n:]
        places = torch.arange(plane.numel(), device=x.device).view(plane).expand(x.shape)
        best = w.argmax(-1, keepdim=True)
        return w.amax(-1), windows.of(places, 0, 0).flatten(-n).gather(-1, best).squeeze(-1)

    return pool


def _avg_pool(n):
    def pool(x, kernel_size, stride=(), padding=(0,), ceil_mode=False, count_include_pad=True, divisor_override=None):
        windows = _Windows(x.shape, _each(kernel_size, n), stride, padding, [1], ceil_mode)
        dims = list(range(-n, 0))
        total = windows.of(_exact(x), 0, 0).sum(dims)
        with _disable_current_modes():
            ones = torch.ones(x.shape[-n:], dtype=total.dtype, device=x.device)
            counts = windows.of(ones, 1 if count_include_pad else 0, 0).sum(dims)
            divisor = divisor_override or (counts.flatten()[0].item() if bool((counts == counts.flatten()[0]).all()) else None)
        return (total / (counts if divisor is None else divisor)).to(x.dtype)

    return pool


def _resized(op):
    """Sizes of axes one after the other, each by a product with the matrix that the operator makes of the unit vectors."""

    def resize(x, output_size, *rest):
        y, n = _exact(x), len(output_size)
        for i, size in enumerate(output_size):
            options = [*rest[:1], *(None if k != i else a for k, a in enumerate(rest[1:]))]
            with _disable_current_modes():
                matrix = _matrix(op, n, i, y.shape[i - n], size, options).to(y.dtype)
            y = torch.matmul(y.transpose(i - n, -1), matrix).transpose(i - n, -1)
        return y.to(x.dtype)

    return resize


def _matrix(op, n, axis, size, to, options):
    """What an operator on n axes makes of each unit vector along one of them. The others are two long: some kernels err on one."""
    shape, sizes = [2] * n, [2] * n
    shape[axis], sizes[axis] = size, to
    unit = torch.eye(size, dtype=torch.float64).view(1, size, *(size if d == axis else 1 for d in range(n)))
    made = op(unit.expand(1, size, *shape).contiguous(), sizes, *options)
    return made.movedim(2 + axis, 2).reshape(size, to, -1)[..., 0]


def _cdist(x1, x2, p, compute_mode=None):
    return torch.linalg.vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


def _kthvalue(x, k, dim=-1, keepdim=False):
    values, places = torch.sort(x, dim=dim, stable=True)
    return _taken(values, dim, keepdim, k - 1), _taken(places, dim, keepdim, k - 1)


def _taken(x, dim, keepdim, i):
    return x.narrow(dim, i, 1) if keepdim else x.select(dim, i)


def _median(x, dim=None, keepdim=False):
    """The lower of two; NaN if there is one, the first of them."""
    if dim is None:
        return _median(x.reshape(-1), 0)[0]
    value, place = _kthvalue(x, (x.shape[dim] + 1) // 2, dim, keepdim)
    if not x.is_floating_point():
        return value, place
    none = x.isnan()
    first, any_none = none.to(torch.int64).argmax(dim, keepdim=keepdim), none.any(dim, keepdim=keepdim)
    return torch.where(any_none, float("nan"), value), torch.where(any_none, first, place)


def _mode(x, dim=-1, keepdim=False):
    """The last place of the number that comes most often, of several the least."""
    lines = x.movedim(dim, -1)
    counts = (lines.unsqueeze(-1) == lines.unsqueeze(-2)).sum(-1)
    most = counts == counts.amax(-1, keepdim=True)
    values, places = torch.sort(lines, stable=True)
    value = values.gather(-1, most.gather(-1, places).to(torch.int64).argmax(-1, keepdim=True))
    place = ((lines == value) * torch.arange(lines.shape[-1], device=x.device)).amax(-1, keepdim=True)
    value, place = value.movedim(-1, dim), place.movedim(-1, dim)
    return (value, place) if keepdim else (value.squeeze(dim), place.squeeze(dim))


def _batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps):
    """In training, by the statistics of the batch itself."""
    if not training:
        return aten._native_batch_norm_legit_no_training(x, weight, bias, running_mean, running_var, momentum, eps)[0]
    y = _exact(x)
    dims = [0, *range(2, x.dim())]
    shape = [1, -1] + [1] * (x.dim() - 2)
    y = (y - y.mean(dims, keepdim=True)) * torch.rsqrt(y.var(dims, correction=0, keepdim=True) + eps)
    if weight is not None:
        y = y * weight.view(shape)
    return (y if bias is None else y + bias.view(shape)).to(x.dtype)


def _digamma(x):
    """By its series beyond 16, below by ψ(x) = ψ(x+1) − 1/x and by reflection."""
    y = x.double()
    z = torch.where(y < 0, 1 - y, y)
    below = 1 / z + sum(1 / (z + k) for k in range(1, 16))
    z = z + 16
    r = 1 / (z * z)
    v = z.log() - 0.5 / z - r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r / 132)))) - below
    v = torch.where(y < 0, v - math.pi / torch.tan(math.pi * y), v)
    return torch.where((y < 0) & (y == y.floor()), math.nan, v).to(x.dtype)


_APART = {
    "aten::im2col": _im2col,
    "aten::max_pool2d_with_indices": _max_pool(2), "aten::max_pool3d_with_indices": _max_pool(3),
    "aten::avg_pool2d": _avg_pool(2), "aten::avg_pool3d": _avg_pool(3),
    **{f"aten::{op}": _resized(getattr(aten, op).default) for op in (
        "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
        "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d")},
    "aten::_cdist_forward": _cdist, "aten::kthvalue": _kthvalue, "aten::median": _median, "aten::median.dim": _median, "aten::mode": _mode,
    "aten::native_batch_norm": _batch_norm, "aten::digamma": _digamma,
}  # fmt: skip
