"""Images of a case: where they stand in its text, and what the model's own processor makes of them."""

import os

from . import tokens
from .errors import ModelError, UsageError

MARK = "<image>"  # where an image stands in the text of a case; without any the images come first


class Images:
    """The processor of a job's model, loaded by the first case that has images."""

    def __init__(self, job):
        self.job, self._processor = job, None

    def encode(self, case):
        """Returns the token ids of a case of one sequence, with as many of each image as the processor puts there."""
        if case.get("token_ids"):
            return [list(map(int, ids)) for ids in case["token_ids"]]
        if len(case["images"]) != 1 or len(case.get("prompts") or [0]) != 1:
            raise UsageError(f"case {case['name']}: images are of one sequence", "give each prompt a case of its own")
        made = self._process(text=[self._text(case)], images=self._open(case["images"]), add_special_tokens=not case.get("messages"), return_tensors="pt")
        ids = made["input_ids"].tolist()
        again = self.inputs(ids, case["images"])
        lacking = sorted(k for k in set(made) - {"input_ids", "attention_mask"} if k not in again or again[k].shape != made[k].shape)
        if lacking:
            raise ModelError(f"case {case['name']}: {type(self._processor).__name__} makes {', '.join(lacking)} of its text",
                             "goparity runs token ids with images, and makes only what the image processor says of these: give an oracle file")  # fmt: skip
        return ids

    def inputs(self, rows, images):
        """What the model is given beside the ids of some sequences, for the images of each."""
        import torch

        processor = self._get()
        made = processor.image_processor(self._open([paths for paths in images if paths]), return_tensors="pt")
        kinds = getattr(processor, "create_mm_token_type_ids", None)
        names = [n for n in processor.model_input_names if kinds and n in ("token_type_ids", "mm_token_type_ids")]
        return {k: v for k, v in made.items() if k in processor.model_input_names} | {n: torch.tensor(kinds(rows)) for n in names}

    def _text(self, case):
        processor, (paths,) = self._get(), case["images"]
        texts = case.get("prompts") or [m["content"] for m in case.get("messages") or []]
        marks = sum(t.count(MARK) for t in texts)
        if marks not in (0, len(paths)):
            raise UsageError(f"case {case['name']} has {len(paths)} images, and its text {MARK} {marks} times")
        if case.get("prompts"):
            own = getattr(processor, "boi_token", None) or getattr(processor, "image_token", None)
            if not own:
                raise UsageError(f"case {case['name']}: {type(processor).__name__} has no image_token", "give messages in place of the prompt")
            return texts[0].replace(MARK, own) if marks else own * len(paths) + texts[0]
        turns = [{**m, "content": _parts(m["content"])} for m in tokens.messages(case)]
        if not marks:
            first = next((m for m in turns if m["role"] == "user"), turns[0])
            first["content"] = [{"type": "image"} for _ in paths] + first["content"]
        try:
            return processor.apply_chat_template(turns, tools=case.get("tools"), chat_template=tokens.template(case), add_generation_prompt=True, tokenize=False)
        except Exception as e:  # a template is a program of its own
            raise UsageError(f"case {case['name']}: its chat template: {e}", tokens.TEMPLATE_HINT) from e

    def _process(self, **given):
        processor = self._get()
        try:
            return processor(**given)
        except (ValueError, TypeError) as e:
            raise ModelError(f"{type(processor).__name__}: {e}") from e

    def _get(self):
        if self._processor is None:
            from transformers import AutoProcessor

            try:
                self._processor = AutoProcessor.from_pretrained(self.job.model, revision=self.job.revision, trust_remote_code=self.job.trust_remote_code)
            except (OSError, ValueError, ImportError) as e:
                raise ModelError(f"the processor of {self.job.model}: {e}", "images need it; cases: {auto: texts} in fixture.yaml plans none") from e
            if not hasattr(self._processor, "image_processor"):
                raise ModelError(f"{self.job.model} has no processor of images", "look for preprocessor_config.json or processor_config.json")
        return self._processor

    @staticmethod
    def _open(images):
        from PIL import Image

        try:
            return [[Image.open(p).convert("RGB") for p in paths] for paths in images]
        except OSError as e:
            raise UsageError(f"an image cannot be read: {e}") from e


def _parts(text):
    """The content of a message as a list of texts and images."""
    parts = []
    for i, piece in enumerate(text.split(MARK)):
        parts += [{"type": "image"}] * (i > 0) + [{"type": "text", "text": piece}] * bool(piece)
    return parts


def names(images):
    """The files of each sequence, without their folders, as run.json has them."""
    return [[os.path.basename(p) for p in paths or []] for paths in images]
