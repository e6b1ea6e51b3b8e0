"""tiny_albert.py DIR: a random ALBERT whose one layer runs three times, the same at each call."""

import sys

import torch
from transformers import AlbertConfig, AlbertModel

torch.manual_seed(0)
model = AlbertModel(AlbertConfig(
    vocab_size=40, embedding_size=16, hidden_size=32, num_hidden_layers=3, num_attention_heads=2, intermediate_size=64,
    max_position_embeddings=64, pad_token_id=0, bos_token_id=2, eos_token_id=3, initializer_range=0.2))  # fmt: skip
model.save_pretrained(sys.argv[1])
