"""tiny_bert.py DIR: a random BERT of 2 layers with a classifier of 3 labels and a tokenizer of letters, the same at each call."""

import sys

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

torch.manual_seed(0)
BertForSequenceClassification(BertConfig(
    vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, max_position_embeddings=64,
    num_labels=3, pad_token_id=0)).save_pretrained(sys.argv[1])  # fmt: skip

vocabulary = {t: i for i, t in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghijklmnopqrstuvwxyz"])}
tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]").save_pretrained(sys.argv[1])
