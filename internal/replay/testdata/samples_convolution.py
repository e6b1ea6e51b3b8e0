import torch
from torch.nn import functional as F

FLOATS = [torch.float32, torch.bfloat16, torch.float16, torch.float64]

samples = [
    *[("conv1d", lambda t, d=d: F.conv1d(t(2, 3, 9, dtype=d), t(4, 3, 3, dtype=d), t(4, dtype=d))) for d in FLOATS],
    ("conv1d", lambda t: F.conv1d(t(1, 4, 9), t(4, 1, 4), t(4), padding=3, groups=4)),
    ("conv1d", lambda t: F.conv1d(t(1, 4, 12), t(6, 2, 3), None, stride=2, padding=2, dilation=2, groups=2)),
    ("conv1d", lambda t: F.conv1d(t(3, 7), t(2, 3, 1))),
    ("conv1d", lambda t: F.conv1d(t(1, 5, 3).transpose(1, 2), t(3, 3, 2).transpose(0, 1), padding="same")),
    ("conv2d", lambda t: F.conv2d(t(2, 3, 6, 5), t(4, 3, 3, 2), t(4))),
    ("conv2d", lambda t: F.conv2d(t(1, 3, 8, 8), t(5, 3, 4, 4), t(5), stride=4)),
    ("conv2d", lambda t: F.conv2d(t(1, 4, 6, 7), t(4, 2, 3, 2), t(4), stride=(2, 1), padding=(1, 2), dilation=(1, 3), groups=2)),
    ("conv2d", lambda t: F.conv2d(t(1, 4, 5, 5), t(4, 1, 3, 3), padding=1, groups=4)),
    ("conv3d", lambda t: F.conv3d(t(1, 2, 4, 5, 3), t(3, 2, 2, 3, 1), t(3), stride=(2, 1, 1), padding=(0, 1, 0))),
    *[("transposed1d", lambda t, d=d: F.conv_transpose1d(t(2, 3, 5, dtype=d), t(3, 4, 4, dtype=d), t(4, dtype=d), stride=2)) for d in FLOATS],
    ("transposed1d", lambda t: F.conv_transpose1d(t(1, 4, 5), t(4, 3, 3), stride=3, padding=1, output_padding=2, dilation=2, groups=2)),
    ("transposed2d", lambda t: F.conv_transpose2d(t(1, 3, 4, 3), t(3, 2, 3, 3), t(2), stride=(2, 1), padding=(2, 1), output_padding=(1, 0))),
    ("transposed2d", lambda t: F.conv_transpose2d(t(1, 2, 3, 3), t(2, 2, 1, 1), padding=1)),
]
