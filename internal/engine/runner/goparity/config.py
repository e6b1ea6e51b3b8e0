"""The configuration of a Hugging Face model: config.json, and what the job changes in it."""

import difflib
import json
import os
import tempfile
from contextlib import contextmanager

from .errors import ModelError, UsageError

LAYER_KEYS = ["num_hidden_layers", "n_layer", "num_layers", "n_layers", "depth", "encoder_layers", "decoder_layers",
              "num_encoder_layers", "num_decoder_layers"]  # fmt: skip
SUB_CONFIGS = ["text_config", "vision_config", "language_config", "llm_config", "encoder_config", "decoder_config"]
PER_LAYER_KEYS = ["layer_types", "no_rope_layers"]  # lists with one entry per layer


def load(folder):
    """Returns config.json of a model's folder."""
    try:
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
            config = json.load(f)
    except (OSError, ValueError) as e:
        raise ModelError(f"{folder}/config.json: {e}") from e
    if not isinstance(config, dict):
        raise ModelError(f"{folder}/config.json is no JSON object")
    return config


def override(config, job):
    """Applies max_layers and hf_config_overrides to a config.

    A key that it does not have is an error.
    """
    if job.max_layers:
        _cut(config, job.max_layers)
    for dotted, value in job.overrides.items():
        *path, key = dotted.split(".")
        part = config
        for p in path:
            part = part.get(p) if isinstance(part, dict) else None
        if not isinstance(part, dict):
            raise UsageError(f"hf_config_overrides: {dotted}: the configuration has no section {'.'.join(path)}")
        if key not in part:
            near = max(part, key=lambda k: difflib.SequenceMatcher(None, k, key).ratio(), default="")
            raise UsageError(f"hf_config_overrides: {dotted}: the configuration has no such key", f"did you mean {near}?" if near else "")
        part[key] = value
    return config


def _cut(config, max_layers):
    hit = False
    for part in [config] + [config[k] for k in SUB_CONFIGS if isinstance(config.get(k), dict)]:
        for key in LAYER_KEYS:
            if isinstance(part.get(key), int):
                part[key], hit = min(part[key], max_layers), True
        for key in PER_LAYER_KEYS:
            if isinstance(part.get(key), list):
                part[key] = part[key][:max_layers]
    if not hit:
        raise UsageError(f"max_layers: the configuration has none of the keys {', '.join(LAYER_KEYS)}",
                         "set the model's own key with hf_config_overrides, or max_layers: all")  # fmt: skip


@contextmanager
def overridden_folder(job):
    """Yields the model's folder.

    With overrides it is a temporary one, with its own config.json and links to all other files.
    """
    if not job.max_layers and not job.overrides:
        yield job.model
        return
    source = job.model
    if not job.local:
        from huggingface_hub import snapshot_download

        source = snapshot_download(job.model, revision=job.revision)
    with tempfile.TemporaryDirectory(prefix="goparity-model-") as folder:
        for name in os.listdir(source):
            if name != "config.json":
                os.symlink(os.path.abspath(os.path.join(source, name)), os.path.join(folder, name))
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
            json.dump(override(load(source), job), f)
        yield folder


# Settings that say how many positions a model has.
POSITIONS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len")


class Limits:
    """Vocabulary and positions of a model, from its config; 0 where it does not say."""

    def __init__(self, config):
        text = next((config[k] for k in ("text_config", "language_config", "llm_config") if isinstance(config.get(k), dict)), {})
        self.vocab = text.get("vocab_size") or config.get("vocab_size") or 0
        self.longest = next((c[k] for c in (text, config) for k in POSITIONS if isinstance(c.get(k), int) and c[k] > 0), 0)
        rope = next((c[k] for c in (text, config) for k in ("rope_parameters", "rope_scaling") if isinstance(c.get(k), dict)), {})
        if (rope.get("rope_type") or rope.get("type")) == "dynamic":
            self.longest = 0  # it is where the angles begin to stretch


def read_by(settings):
    """What transformers reads of a config.json, defaults included, as JSON values."""
    try:
        return json.loads(settings.to_json_string(use_diff=False))
    except (AttributeError, TypeError, ValueError):
        return {}
