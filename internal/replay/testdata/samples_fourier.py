import torch

samples = [
    *[("rfft", lambda t, n=n, how=how: torch.view_as_real(torch.fft.rfft(t(2, 12), n=n, norm=how))) for n in [None, 9, 16] for how in [None, "ortho", "forward"]],
    ("rfft", lambda t: torch.view_as_real(torch.fft.rfft(t(6, 2, dtype=torch.float64), dim=0))),
    ("rfft2", lambda t: torch.view_as_real(torch.fft.rfft2(t(3, 4, 5)))),
    *[("irfft", lambda t, n=n: torch.fft.irfft(torch.view_as_complex(t(2, 7, 2)), n=n)) for n in [None, 8, 9, 13]],
    ("irfft2", lambda t: torch.fft.irfft2(torch.view_as_complex(t(3, 4, 5, 2)), norm="ortho")),
    ("fft", lambda t: torch.view_as_real(torch.fft.fft(torch.view_as_complex(t(3, 5, 2))))),
    ("fft", lambda t: torch.fft.fft(torch.fft.fft(t(4, 6), dim=-1), dim=-2).real),
    ("ifft", lambda t: torch.view_as_real(torch.fft.ifft(torch.view_as_complex(t(5, 3, 2)), dim=0))),
    ("convolved", lambda t: torch.fft.irfft(torch.fft.rfft(t(3, 8), n=16) * torch.fft.rfft(t(8), n=16), n=16)[..., :8]),
    ("fft", lambda t: torch.view_as_real(torch.fft.fft(t(3, 4)))),
    ("complex", lambda t: torch.view_as_real(t(3, 4).to(torch.complex64))),
]
