"""A small U-Net, as diffusers has them: what transformers has not got."""

import json
import math

import torch
from torch import nn

F = torch.nn.functional


class Config:
    def __init__(self, **keys):
        self.__dict__.update(keys)

    def to_json_string(self, **_):
        return json.dumps(self.__dict__)


class Resnet(nn.Module):
    def __init__(self, n, m, time):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, n, eps=1e-5), nn.Conv2d(n, m, 3, padding=1)
        self.time_emb_proj = nn.Linear(time, m)
        self.norm2, self.conv2 = nn.GroupNorm(4, m, eps=1e-5), nn.Conv2d(m, m, 3, padding=1)
        self.conv_shortcut, self.act = nn.Conv2d(n, m, 1), nn.SiLU()

    def forward(self, x, time):
        h = self.conv1(self.act(self.norm1(x)))
        t = self.time_emb_proj(time)
        h = self.conv2(self.act(self.norm2(h + t[:, :, None, None])))
        return self.conv_shortcut(x) + h


class UNet(nn.Module):
    """Noise of images [batch, 4, 8, 8] and their times."""

    _keep_in_fp32_modules = _keep_in_fp32_modules_strict = None

    def __init__(self):
        super().__init__()
        self.config = Config(model_type="unet", in_channels=4, norm_num_groups=4, norm_eps=1e-5)
        self.time_proj, self.conv_in = nn.Linear(32, 24), nn.Conv2d(4, 16, 3, padding=1)
        self.down, self.downsample = Resnet(16, 16, 24), nn.Conv2d(16, 16, 3, stride=2, padding=1)
        self.mid, self.upsample = Resnet(16, 24, 24), nn.Conv2d(24, 24, 3, padding=1)
        self.up, self.conv_norm_out = Resnet(40, 16, 24), nn.GroupNorm(4, 16, eps=1e-5)
        self.conv_act, self.conv_out = nn.SiLU(), nn.Conv2d(16, 4, 3, padding=1)

    def times(self, t):
        a = t[:, None] * torch.exp(-math.log(10000) * torch.arange(16) / 16)
        return torch.cat([a.cos(), a.sin()], -1).to(self.time_proj.weight.dtype)

    def forward(self, sample, timestep):
        time = F.silu(self.time_proj(self.times(timestep.float())))
        x = self.conv_in(sample)
        skip = self.down(x, time)
        x = self.mid(self.downsample(skip), time)
        x = self.upsample(F.interpolate(x, scale_factor=2.0, mode="nearest"))
        x = self.up(torch.cat([x, skip], 1), time)
        return self.conv_out(self.conv_act(self.conv_norm_out(x)))
