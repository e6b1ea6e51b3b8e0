"""tiny_vision.py DIR llava|qwen2_5_vl|gemma3: a random model of two layers that takes images, with its processor, the same at each call.

The processor of qwen2_5_vl needs torchvision, for videos.
"""

import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

folder, kind = sys.argv[1:]

LLAVA, QWEN, GEMMA = "llava", "qwen2_5_vl", "gemma3"
IMAGE = {LLAVA: "<image>", QWEN: "<|image_pad|>", GEMMA: "<image_soft_token>"}[kind]
special = ["<s>", "</s>", "<pad>", IMAGE, "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|video_pad|>",
           "<start_of_image>", "<end_of_image>"]  # fmt: skip
letters = sorted(pre_tokenizers.ByteLevel.alphabet())
bpe = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate([*special, *letters])}, merges=[]))
bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
ids = {t: i for i, t in enumerate(special)}
names = {LLAVA: {"image_token": IMAGE}, QWEN: {"image_token": IMAGE, "video_token": "<|video_pad|>"},
         GEMMA: {"image_token": IMAGE, "boi_token": "<start_of_image>", "eoi_token": "<end_of_image>"}}[kind]  # fmt: skip
tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, bos_token="<s>", eos_token="</s>", pad_token="<pad>", extra_special_tokens=names)
tokenizer.add_special_tokens({"additional_special_tokens": special[3:]})

MARK = {LLAVA: "<image>", QWEN: "<|vision_start|><|image_pad|><|vision_end|>", GEMMA: "<start_of_image>"}[kind]
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['content'] is string %}{{ m['content'] }}{% else %}{% for part in m['content'] %}"
    "{% if part['type'] == 'image' %}" + MARK + "{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
text = dict(vocab_size=320, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=512, bos_token_id=0, eos_token_id=1, pad_token_id=2)  # fmt: skip
vision = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, image_size=24, patch_size=8)
if kind == LLAVA:
    from transformers import CLIPImageProcessor, CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration, LlavaProcessor

    settings = LlavaConfig(vision_config=CLIPVisionConfig(**vision), text_config=LlamaConfig(**text), image_token_index=ids[IMAGE],
                           image_seq_length=9)  # fmt: skip
    make, images = LlavaForConditionalGeneration, CLIPImageProcessor(size={"shortest_edge": 24}, crop_size={"height": 24, "width": 24})
    processor = LlavaProcessor(images, tokenizer, patch_size=8, vision_feature_select_strategy="default", chat_template=TEMPLATE,
                               num_additional_image_tokens=1)  # fmt: skip
elif kind == QWEN:
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration, Qwen2_5_VLProcessor, Qwen2VLImageProcessor, Qwen2VLVideoProcessor

    settings = Qwen2_5_VLConfig(
        vision_config=dict(depth=2, hidden_size=32, intermediate_size=64, num_heads=4, out_hidden_size=64, patch_size=8, spatial_merge_size=2,
                           temporal_patch_size=2, window_size=32, fullatt_block_indexes=[1]),
        text_config=dict(**text, rope_parameters={"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 10000.0}),
        image_token_id=ids[IMAGE], video_token_id=ids["<|video_pad|>"], vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"])  # fmt: skip
    make = Qwen2_5_VLForConditionalGeneration
    images = Qwen2VLImageProcessor(patch_size=8, merge_size=2, temporal_patch_size=2, size={"shortest_edge": 256, "longest_edge": 4096})
    processor = Qwen2_5_VLProcessor(images, tokenizer, Qwen2VLVideoProcessor(), chat_template=TEMPLATE)
else:
    from transformers import Gemma3Config, Gemma3ForConditionalGeneration, Gemma3ImageProcessor, Gemma3Processor

    settings = Gemma3Config(
        text_config=dict(**text, head_dim=16, sliding_window=32, layer_types=["sliding_attention", "full_attention"]), vision_config=vision,
        mm_tokens_per_image=9, image_token_index=ids[IMAGE], boi_token_index=ids["<start_of_image>"], eoi_token_index=ids["<end_of_image>"])  # fmt: skip
    make, images = Gemma3ForConditionalGeneration, Gemma3ImageProcessor(size={"height": 24, "width": 24})
    processor = Gemma3Processor(images, tokenizer, image_seq_length=9, chat_template=TEMPLATE)
torch.manual_seed(0)
model = make(settings)
with torch.no_grad():
    for name, p in sorted(model.named_parameters()):
        p.copy_(torch.randn_like(p) * 0.1 + 1 if "norm" in name and p.dim() == 1 else torch.randn_like(p) * 0.08)
model.save_pretrained(folder)
processor.save_pretrained(folder)
