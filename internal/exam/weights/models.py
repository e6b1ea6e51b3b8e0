"""Checkpoints of many architectures, small, random, as transformers makes them."""

import torch
import transformers as tf

_LLAMA = dict(hidden_size=256, intermediate_size=512, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, vocab_size=320,
              head_dim=64, max_position_embeddings=256, tie_word_embeddings=False, pad_token_id=0, bos_token_id=1, eos_token_id=2)  # fmt: skip
_GPT = dict(n_embd=256, n_layer=3, n_head=4, vocab_size=320, n_positions=128, bos_token_id=1, eos_token_id=2)
_FALCON = {k: v for k, v in _LLAMA.items() if k not in ("head_dim", "num_key_value_heads", "intermediate_size")}
_MOE = dict(_LLAMA, num_local_experts=4, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=256, shared_expert_intermediate_size=256)

# name → (class, settings, architecture of GGUF or None)
MODELS = {
    "llama": ("LlamaForCausalLM", _LLAMA, "llama"),
    "llama_tied": ("LlamaForCausalLM", dict(_LLAMA, tie_word_embeddings=True), "llama"),
    "mistral": ("MistralForCausalLM", _LLAMA, "llama"),
    "qwen2": ("Qwen2ForCausalLM", _LLAMA, "qwen2"),
    "qwen3": ("Qwen3ForCausalLM", _LLAMA, "qwen3"),
    "gemma2": ("Gemma2ForCausalLM", dict(_LLAMA, tie_word_embeddings=True), "gemma2"),
    "gemma3": ("Gemma3ForCausalLM", dict(_LLAMA, tie_word_embeddings=True), "gemma3"),
    "granite": ("GraniteForCausalLM", _LLAMA, "granite"),
    "olmo2": ("Olmo2ForCausalLM", _LLAMA, "olmo2"),
    "starcoder2": ("Starcoder2ForCausalLM", _LLAMA, "starcoder2"),
    "cohere": ("CohereForCausalLM", dict(_LLAMA, tie_word_embeddings=True), "command-r"),
    "stablelm": ("StableLmForCausalLM", _LLAMA, "stablelm"),
    "phi3": ("Phi3ForCausalLM", _LLAMA, "phi3"),
    "phi": ("PhiForCausalLM", _LLAMA, "phi2"),
    "mixtral": ("MixtralForCausalLM", _MOE, "llama"),
    "qwen2moe": ("Qwen2MoeForCausalLM", _MOE, "qwen2moe"),
    "qwen3moe": ("Qwen3MoeForCausalLM", _MOE, "qwen3moe"),
    "gptoss": ("GptOssForCausalLM", _MOE, "gpt-oss"),
    "deepseek3": ("DeepseekV3ForCausalLM", dict(_MOE, num_key_value_heads=4, n_routed_experts=4, n_group=2, topk_group=1, n_shared_experts=1, first_k_dense_replace=1,
                                                q_lora_rank=64, kv_lora_rank=64, qk_rope_head_dim=32, qk_nope_head_dim=32, v_head_dim=32), "deepseek2"),
    "gpt2": ("GPT2LMHeadModel", _GPT, "gpt2"),
    "gptneox": ("GPTNeoXForCausalLM", dict(_LLAMA), "gptneox"),
    "falcon": ("FalconForCausalLM", dict(_FALCON, new_decoder_architecture=True, num_kv_heads=2, bias=False), "falcon"),
    "falcon7": ("FalconForCausalLM", dict(_FALCON, multi_query=True, new_decoder_architecture=False, bias=False), "falcon"),
    "bloom": ("BloomForCausalLM", dict(hidden_size=256, n_layer=3, n_head=4, vocab_size=320), "bloom"),
    "mpt": ("MptForCausalLM", dict(d_model=256, n_layers=3, n_heads=4, vocab_size=320, max_seq_len=128, no_bias=True), "mpt"),
    "opt": ("OPTForCausalLM", dict(_LLAMA, ffn_dim=512, word_embed_proj_dim=256), None),
    "gptj": ("GPTJForCausalLM", dict(_GPT, rotary_dim=32), "gptj"),
    "bigcode": ("GPTBigCodeForCausalLM", _GPT, "starcoder"),
    "bert": ("BertModel", _LLAMA, "bert"),
    "distilbert": ("DistilBertModel", dict(dim=256, hidden_dim=512, n_layers=3, n_heads=4, vocab_size=320, max_position_embeddings=128), None),
    "modernbert": ("ModernBertModel", _LLAMA, None),
    "whisper": ("WhisperForConditionalGeneration", dict(d_model=256, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                                                        encoder_ffn_dim=512, decoder_ffn_dim=512, vocab_size=320, num_mel_bins=16, max_source_positions=64,
                                                        max_target_positions=64, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1), None),
    "t5": ("T5ForConditionalGeneration", dict(d_model=256, d_kv=64, d_ff=512, num_layers=2, num_heads=4, vocab_size=320), "t5"),
    "mamba": ("MambaForCausalLM", dict(hidden_size=256, state_size=16, num_hidden_layers=2, vocab_size=320), "mamba"),
    "vit": ("ViTModel", dict(hidden_size=256, num_hidden_layers=2, num_attention_heads=4, intermediate_size=512, image_size=32, patch_size=8), None),
}  # fmt: skip


def make(name):
    """Returns the tensors of a checkpoint, its config and the architecture of GGUF."""
    kind, settings, arch = MODELS[name]
    torch.manual_seed(sum(map(ord, name)))
    cls = getattr(tf, kind)
    config = cls.config_class(**settings)
    model = cls(config)
    with torch.no_grad():
        for key, p in model.named_parameters():
            if p.ndim == 1 or key.endswith("A_log"):  # norms of ones and biases of zeros tell nothing
                mean = 0.0 if "bias" in key else p.float().mean()
                p.copy_(mean + 0.1 * torch.randn_like(p))
    tied = set(getattr(model, "all_tied_weights_keys", None) or getattr(model, "_tied_weights_keys", None) or [])
    sd = {k: v.detach().clone().float() if v.is_floating_point() else v.clone() for k, v in model.state_dict().items()}
    if getattr(config, "tie_word_embeddings", False):
        for k in tied:
            if k in sd and len(sd) > 1:
                del sd[k]
    return sd, {**config.to_dict(), "architectures": [kind]}, arch
