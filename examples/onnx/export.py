# export.py FOLDER: model.onnx of a Hugging Face folder.
import sys

import torch
from transformers import AutoModel

model = AutoModel.from_pretrained(sys.argv[1], dtype=torch.float32, attn_implementation="eager").eval()
model.config.return_dict = False
ids = torch.tensor([[101, 1996, 3574, 1997, 102]])
tokens = {1: torch.export.Dim("tokens")}
torch.onnx.export(model, (ids, torch.ones_like(ids)), "model.onnx", input_names=["input_ids", "attention_mask"], dynamo=True, optimize=False,
                  external_data=False, dynamic_shapes={"input_ids": tokens, "attention_mask": tokens})
