# SPDX-License-Identifier: Apache-2.0
# group: models
# limit: 80
# Models of the transformers library with random weights: GPT-2 generates in half precision (greedy, sampled,
# beams), a Llama-style one with grouped queries and a cache, a BERT-style encoder with a mask and one
# training step. The tokens are the native ones.
import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
from checks import *

try:
    import torch
    import transformers
    from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel
    from transformers import LlamaConfig, LlamaForCausalLM
except ImportError as e:
    skip(e)

half = torch.float16 if gpu else torch.float32
note(f"transformers {transformers.__version__}")


def tokens(model, ids, **how):
    with torch.inference_mode():
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=24, min_new_tokens=24,
                             pad_token_id=0, **how)
    return out[0, ids.shape[1]:].tolist()


@section()
def gpt2():
    torch.manual_seed(2)
    config = GPT2Config() if gpu else GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=1000)
    model = GPT2LMHeadModel(config).eval()
    ids = torch.randint(0, config.vocab_size, (1, 32))
    with torch.inference_mode():
        want = model(ids).logits
        model = model.to(device).to(half)
        ids = ids.to(device)
        got = model(ids).logits
    close("gpt2 logits", got, want, 3e-2)
    bits("gpt2 logits", got)
    say("gpt2 greedy", tokens(model, ids, do_sample=False))
    say("gpt2 greedy, not repeating", tokens(model, ids, do_sample=False, repetition_penalty=1.3))
    torch.manual_seed(3)
    say("gpt2 sampled", tokens(model, ids, do_sample=True, top_k=50))
    say("gpt2 beams", tokens(model, ids, do_sample=False, num_beams=3))


def llama_of(dtype, attention):
    torch.manual_seed(4)
    config = LlamaConfig(hidden_size=512, intermediate_size=1376, num_hidden_layers=4, num_attention_heads=8,
                         num_key_value_heads=2,
                         vocab_size=8000, max_position_embeddings=512, attn_implementation=attention)
    model = LlamaForCausalLM(config).eval()
    ids = torch.randint(0, 8000, (2, 64))
    with torch.inference_mode():
        want = model(ids).logits
        model = model.to(device).to(dtype)
        got = model(ids.to(device)).logits
    return model, ids, got, want


@section()
def llama():
    for dtype, tolerance in ((half, 2e-2), (torch.bfloat16, 1e-1)):
        for attention in ("sdpa", "eager"):
            name = f"llama {attention} {str(dtype)[6:]}"
            model, ids, got, want = llama_of(dtype, attention)
            close(name, got, want, tolerance)
            say(f"{name} tokens", tokens(model, ids[:1].to(device), do_sample=False, repetition_penalty=1.3))


@section()
def llama_static_cache():
    model, ids, _, _ = llama_of(half, "sdpa")
    say("llama static cache",
        tokens(model, ids[:1].to(device), do_sample=False, cache_implementation="static",
        disable_compile=True))


@section()
def bert():
    torch.manual_seed(5)
    config = BertConfig(hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024,
                        vocab_size=3000,
                        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = BertForMaskedLM(config).eval()
    ids = torch.randint(0, 3000, (8, 96))
    mask = (torch.arange(96)[None] < torch.arange(20, 100, 10)[:, None]).long()
    with torch.inference_mode():
        want = model(ids, attention_mask=mask).logits[mask.bool()]
    model = model.to(device)
    ids, mask = ids.to(device), mask.to(device)
    for dtype, tolerance in ((torch.float32, 1e-2), (half, 2e-2), (torch.bfloat16, 1e-1)):
        with torch.inference_mode(), torch.autocast(device, dtype=dtype, enabled=dtype != torch.float32):
            close(f"bert {str(dtype)[6:]}", model(ids, attention_mask=mask).logits[mask.bool()], want,
                  tolerance)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=gpu)
    for step in range(4):
        optimizer.zero_grad()
        loss = model(ids, attention_mask=mask, labels=torch.where(mask == 1, ids, -100)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        number(f"bert loss {step}", loss.detach(), 1e-3)


done()
