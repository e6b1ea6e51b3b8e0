import torch
from torch.nn import functional as F

FLOATS = [torch.float32, torch.bfloat16, torch.float16, torch.float64]
aten = torch.ops.aten


def resize(mode, *shape, size=None, scale=None, **kw):
    dtypes = kw.pop("dtypes", [torch.float32])
    return [(mode.replace("-", "_"), lambda t, d=d: F.interpolate(t(*shape, dtype=d), size, scale, mode, **kw)) for d in dtypes]


samples = [
    *[("max_pool2d", lambda t, d=d: F.max_pool2d(t(1, 2, 6, 7, dtype=d), 2, return_indices=True)) for d in FLOATS],
    ("max_pool2d", lambda t: F.max_pool2d(t(2, 7, 6), (3, 2), (2, 1), (1, 1), ceil_mode=True, return_indices=True)),
    ("max_pool2d", lambda t: F.max_pool2d(t(1, 1, 5, 5, strange=True), 2, 1, dilation=(1, 2), return_indices=True)),
    ("max_pool1d", lambda t: F.max_pool1d(t(2, 3, 8), 3, 2)),
    ("max_pool3d", lambda t: F.max_pool3d(t(1, 2, 4, 4, 5), 2, return_indices=True)),
    *[("avg_pool2d", lambda t, d=d: F.avg_pool2d(t(1, 2, 6, 7, dtype=d), 2)) for d in FLOATS],
    ("avg_pool2d", lambda t: F.avg_pool2d(t(1, 2, 6, 7), 3, 2, 1)),
    ("avg_pool2d", lambda t: F.avg_pool2d(t(1, 2, 6, 7), 3, 2, 1, ceil_mode=True, count_include_pad=False)),
    ("avg_pool2d", lambda t: F.avg_pool2d(t(1, 2, 6, 7), 3, 2, 1, ceil_mode=True)),
    ("avg_pool2d", lambda t: F.avg_pool2d(t(1, 2, 6, 7), (3, 2), divisor_override=5)),
    ("avg_pool1d", lambda t: F.avg_pool1d(t(2, 3, 9), 3, 1, 1)),
    ("avg_pool3d", lambda t: F.avg_pool3d(t(1, 2, 4, 4, 5), 2)),
    ("adaptive", lambda t: F.adaptive_avg_pool2d(t(1, 2, 6, 7), (4, 3))),
    ("adaptive", lambda t: F.adaptive_avg_pool2d(t(2, 5, 5), 1)),
    ("adaptive", lambda t: F.adaptive_avg_pool1d(t(2, 3, 7), 3)),
    ("adaptive", lambda t: F.adaptive_avg_pool3d(t(1, 2, 4, 5, 3), (2, 3, 2))),
    ("im2col", lambda t: F.unfold(t(2, 3, 5, 6), (2, 3), dilation=(2, 1), padding=(1, 0), stride=(1, 2))),
    ("im2col", lambda t: F.unfold(t(1, 2, 4, 4), 2, stride=2)),
    ("col2im", lambda t: F.fold(t(2, 12, 6), (4, 5), (2, 2), stride=(2, 2), padding=(1, 0))),
    ("col2im", lambda t: F.fold(t(1, 8, 4), 4, 2, stride=2)),
    *resize("nearest", 2, 3, 5, size=8),
    *resize("nearest", 1, 2, 4, 3, scale=2, dtypes=FLOATS),
    *resize("nearest", 1, 2, 7, 5, size=(3, 9)),
    *resize("nearest", 1, 1, 2, 3, 4, scale=(2, 1, 1.5)),
    *resize("nearest-exact", 1, 2, 4, 3, size=(7, 2)),
    *resize("bilinear", 1, 2, 4, 3, size=(7, 9), align_corners=False, dtypes=FLOATS),
    *resize("bilinear", 1, 2, 4, 3, size=(7, 1), align_corners=True),
    *resize("bilinear", 1, 2, 4, 5, scale=(1.5, 0.7), align_corners=False),
    *resize("bilinear", 1, 2, 8, 9, size=(3, 4), align_corners=False, antialias=True),
    *resize("bicubic", 1, 2, 4, 3, size=(7, 9), align_corners=False, dtypes=[torch.float32, torch.float64]),
    *resize("bicubic", 1, 2, 4, 3, size=(6, 5), align_corners=True),
    *resize("bicubic", 1, 2, 4, 5, scale=1.5, align_corners=False, recompute_scale_factor=False),
    *resize("bicubic", 1, 2, 9, 8, size=(3, 5), align_corners=False, antialias=True),
    *resize("linear", 2, 3, 5, size=8, align_corners=False),
    ("pixel_shuffle", lambda t: F.pixel_shuffle(t(1, 8, 2, 3), 2)),
    ("pixel_shuffle", lambda t: F.pixel_unshuffle(t(1, 2, 4, 6), 2)),
    *[
        ("grid", lambda t, m=m, p=p, c=c: F.grid_sample(t(1, 2, 4, 5), t(1, 3, 3, 2, scale=0.6), mode=m, padding_mode=p, align_corners=c))
        for m, p, c in [("bilinear", "zeros", False), ("bilinear", "border", True), ("nearest", "zeros", False), ("bicubic", "reflection", True)]
    ],
    *[("cdist", lambda t, p=p: torch.cdist(t(2, 3, 4), t(2, 5, 4), p=p)) for p in [0.0, 1.0, 1.5, 2.0, float("inf")]],
]
