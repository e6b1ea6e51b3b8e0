"""The architectures: tiny configurations of transformers' models, a U-Net, and what each of them is asked."""

import dataclasses

import torch
import transformers

import diffusion


@dataclasses.dataclass
class Arch:
    kind: str  # causal, encoder, seq2seq, vision, audio or diffusion: what goes in
    model: str  # the class
    config: dict
    moe: bool = False
    sizes: str = "num_hidden_layers"  # the key of the number of blocks

    def build(self, seed, **changes):
        """The model with random weights (see weights.py), in float32, eager."""
        if self.kind == "diffusion":
            torch.manual_seed(seed)
            return getattr(diffusion, self.model)().eval()
        cls = getattr(transformers, self.model)
        config = cls.config_class(**{**self.config, **changes})
        config._attn_implementation = "eager"
        return cls(config).eval()


LM = {
    "vocab_size": 128,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
BERT = {k: v for k, v in LM.items() if k != "num_key_value_heads"}
MLA = {"q_lora_rank": 24, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16}
DEEPSEEK = {**MLA, "num_key_value_heads": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1,
            "moe_intermediate_size": 32, "first_k_dense_replace": 1, "n_group": 2, "topk_group": 1, "routed_scaling_factor": 1.5}  # fmt: skip
EXPERTS = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
VISION = {"hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 24, "patch_size": 8}


def lm(name, moe=False, **more):
    return Arch("causal", name + "ForCausalLM", {**LM, **more}, moe)


ARCHS = {
    "llama": lm("Llama"),
    "llama3": lm("Llama", rope_parameters={"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
                                           "high_freq_factor": 4.0, "original_max_position_embeddings": 32}),
    "mistral": lm("Mistral", sliding_window=6),
    "qwen2": lm("Qwen2"),
    "qwen3": lm("Qwen3", head_dim=16),
    "gemma": lm("Gemma", head_dim=16, hidden_activation="gelu_pytorch_tanh"),
    "gemma2": lm("Gemma2", head_dim=16, sliding_window=6, query_pre_attn_scalar=24, attn_logit_softcapping=3.0, final_logit_softcapping=5.0),
    "gemma3": lm("Gemma3", head_dim=16, sliding_window=6, query_pre_attn_scalar=24, layer_types=["sliding_attention", "full_attention"]),
    "mixtral": lm("Mixtral", True, num_local_experts=4, num_experts_per_tok=2),
    "qwen2moe": lm("Qwen2Moe", True, **EXPERTS, shared_expert_intermediate_size=48, decoder_sparse_step=1, norm_topk_prob=True),
    "qwen3moe": lm("Qwen3Moe", True, **EXPERTS, head_dim=16, norm_topk_prob=True),
    "olmoe": lm("Olmoe", True, num_experts=6, num_experts_per_tok=2),
    "deepseek2": lm("DeepseekV2", True, **{**DEEPSEEK, "topk_method": "greedy"}),
    "deepseek3": lm("DeepseekV3", True, **DEEPSEEK),
    "gptoss": lm("GptOss", True, head_dim=16, num_local_experts=4, num_experts_per_tok=2, sliding_window=6,
                 layer_types=["sliding_attention", "full_attention"], rope_parameters={"rope_type": "default", "rope_theta": 150000.0}),
    "granitemoe": lm("GraniteMoe", True, num_local_experts=4, num_experts_per_tok=2, embedding_multiplier=4.0, logits_scaling=2.0,
                     residual_multiplier=0.5, attention_multiplier=0.2),
    "granite": lm("Granite", embedding_multiplier=4.0, logits_scaling=2.0, residual_multiplier=0.5, attention_multiplier=0.2),
    "gpt2": Arch("causal", "GPT2LMHeadModel", {"vocab_size": 128, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 256,
                                                "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}, sizes="n_layer"),
    "neox": lm("GPTNeoX", rotary_pct=0.5, hidden_act="gelu"),
    "gptj": Arch("causal", "GPTJForCausalLM", {"vocab_size": 128, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 256,
                                                "rotary_dim": 8, "bos_token_id": 1, "eos_token_id": 2}, sizes="n_layer"),
    "opt": lm("OPT", ffn_dim=96, word_embed_proj_dim=64),
    "bloom": Arch("causal", "BloomForCausalLM", {"vocab_size": 128, "hidden_size": 64, "n_layer": 2, "n_head": 4, "pad_token_id": 0,
                                                  "bos_token_id": 1, "eos_token_id": 2}, sizes="n_layer"),
    "phi": lm("Phi", partial_rotary_factor=0.5, num_key_value_heads=4),
    "phi3": lm("Phi3"),
    "olmo": lm("Olmo"),
    "olmo2": lm("Olmo2"),
    "falcon": lm("Falcon", new_decoder_architecture=True, num_kv_heads=2),
    "stablelm": lm("StableLm", partial_rotary_factor=0.25, use_qkv_bias=True),
    "cohere": lm("Cohere", use_qk_norm=False, logit_scale=0.5),
    "cohere2": lm("Cohere2", sliding_window=6, logit_scale=0.5, layer_types=["sliding_attention", "full_attention"]),
    "starcoder2": lm("Starcoder2", sliding_window=None),
    "glm4": lm("Glm4", head_dim=16),
    "nemotron": lm("Nemotron"),
    "smollm3": lm("SmolLM3", no_rope_layers=[1, 0]),
    "exaone4": lm("Exaone4", sliding_window=6, layer_types=["sliding_attention", "full_attention"]),
    "lfm2": lm("Lfm2", layer_types=["conv", "full_attention"], block_auto_adjust_ff_dim=False),
    "mamba": Arch("causal", "MambaForCausalLM", {"vocab_size": 128, "hidden_size": 48, "state_size": 8, "num_hidden_layers": 2,
                                                  "pad_token_id": 0, "time_step_rank": 6}),
    "mamba2": Arch("causal", "Mamba2ForCausalLM", {"vocab_size": 128, "hidden_size": 48, "state_size": 8, "num_hidden_layers": 2, "expand": 2,
                                                    "num_heads": 6, "head_dim": 16, "n_groups": 2, "chunk_size": 8, "pad_token_id": 0}),
    "falconmamba": Arch("causal", "FalconMambaForCausalLM", {"vocab_size": 128, "hidden_size": 48, "state_size": 8, "num_hidden_layers": 2,
                                                              "pad_token_id": 0, "time_step_rank": 6}),
    "bert": Arch("encoder", "BertModel", BERT),
    "roberta": Arch("encoder", "RobertaModel", {**BERT, "type_vocab_size": 1, "pad_token_id": 1}),
    "distilbert": Arch("encoder", "DistilBertModel", {"vocab_size": 128, "dim": 64, "hidden_dim": 96, "n_layers": 2, "n_heads": 4},
                       sizes="n_layers"),
    "albert": Arch("encoder", "AlbertModel", {**BERT, "embedding_size": 32}),
    "modernbert": Arch("encoder", "ModernBertModel", {**BERT, "local_attention": 8, "global_attn_every_n_layers": 2, "cls_token_id": 1,
                                                       "sep_token_id": 2}),
    "vit": Arch("vision", "ViTModel", VISION),
    "clipv": Arch("vision", "CLIPVisionModel", VISION),
    "siglip": Arch("vision", "SiglipVisionModel", VISION),
    "dinov2": Arch("vision", "Dinov2Model", VISION),
    "t5": Arch("seq2seq", "T5ForConditionalGeneration", {"vocab_size": 128, "d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 2, "num_heads": 4,
                                                          "relative_attention_num_buckets": 8, "relative_attention_max_distance": 20,
                                                          "decoder_start_token_id": 0}, sizes="num_layers"),
    "bart": Arch("seq2seq", "BartForConditionalGeneration", {"vocab_size": 128, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2,
                                                              "encoder_ffn_dim": 96, "decoder_ffn_dim": 96, "encoder_attention_heads": 4,
                                                              "decoder_attention_heads": 4, "max_position_embeddings": 64}, sizes="encoder_layers"),
    "whisper": Arch("audio", "WhisperModel", {"vocab_size": 128, "num_mel_bins": 16, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2,
                                               "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 96,
                                               "decoder_ffn_dim": 96, "max_source_positions": 12, "max_target_positions": 32,
                                               "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1},
                    sizes="encoder_layers"),
    "qwen2vl": Arch("mrope", "Qwen2VLTextModel", {**LM, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]}}),
    "unet": Arch("diffusion", "UNet", {}),
    "mpt": Arch("causal", "MptForCausalLM", {"vocab_size": 128, "d_model": 64, "n_layers": 2, "n_heads": 4, "max_seq_len": 128, "expansion_ratio": 2,
                                              "pad_token_id": 0}, sizes="n_layers"),
    "rwkv": Arch("causal", "RwkvForCausalLM", {"vocab_size": 128, "hidden_size": 48, "attention_hidden_size": 48, "num_hidden_layers": 2,
                                                "intermediate_size": 96, "context_length": 64, "pad_token_id": 0}),
    "qwen3next": lm("Qwen3Next", True, **EXPERTS, head_dim=16, shared_expert_intermediate_size=48, norm_topk_prob=True, partial_rotary_factor=0.5,
                    linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16, linear_value_head_dim=16,
                    layer_types=["linear_attention", "full_attention"]),
}  # fmt: skip
