"""Whether the reference makes sense: goldens of a model that talks nonsense are worth nothing."""

import torch

from . import config, tokens
from .errors import JobError, ModelError
from .progress import warn
from .torchhooks import Recorder

ADVICE = ("look at the tokenizer and the chat template first, nonsense makes nonsense goldens; "
          "if that is meant, as with random weights, write model: {skip_sanity: REASON} in fixture.yaml")  # fmt: skip


def generated(model, device, case, ids, job, tokenizer, seen):
    """Returns the reference's own text after the first sequence of a case.

    Empty or endless text is doubted, but not after tokens that are none themselves.
    """
    longest = config.Limits(model.config.to_dict()).longest
    room = job.sanity if not longest else min(job.sanity, longest - len(ids[0]))
    if room <= 0:
        return ""
    x = torch.tensor([ids[0]], device=device)
    made = model.generate(input_ids=x, attention_mask=torch.ones_like(x), max_new_tokens=room, do_sample=False, **seen)[0, len(ids[0]) :].tolist()
    try:
        text = tokenizer().decode(made, skip_special_tokens=True)
    except JobError:
        text = " ".join(map(str, made))  # a model without a tokenizer, asked with token ids
    if case.get("arbitrary"):
        return text
    if not text.strip():
        _doubt(job, case, "generates no text")
    elif period := tokens.repeats(made):
        _doubt(job, case, f"repeats {'one token' if period == 1 else f'{period} tokens'} endlessly: {text[-80:]!r}")
    return text


def check_output(job, case, result):
    """Doubts a first float output that is not finite, or the same number everywhere.

    A single element may be anything.
    """
    out = _first_float(result)
    if out is None or not job.sanity:
        return
    bad = out.numel() - int(torch.isfinite(out).sum())
    if bad:
        _doubt(job, case, f"computes {bad} values of {out.numel()} that are not finite")
    elif out.numel() > 1 and bool((out == out.flatten()[0]).all()):
        _doubt(job, case, f"computes {out.flatten()[0].item():g} everywhere")


def _first_float(value):
    if isinstance(value, torch.Tensor):
        return value if value.is_floating_point() and value.numel() else None
    return next((t for _, v in Recorder.fields(value) if (t := _first_float(v)) is not None), None)


def _doubt(job, case, what):
    """Stops a run whose reference makes no sense: so would its goldens.

    With a reason from the user it is a warning.
    """
    text = f"case {case['name']}: the reference itself {what}"
    if job.skip_sanity:
        warn(f"{text}; skip_sanity: {job.skip_sanity}")
        return
    raise ModelError(text, ADVICE)
