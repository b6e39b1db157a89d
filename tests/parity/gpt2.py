"""Hugging Face's GPT-2 for test_gpt2.cpp, small and with random weights.

    gpt2.py make FOLDER FORM    FOLDER/theirs.safetensors, with names as FORM says
                                (bare: as gpt2 is published, with the masks of older
                                files; prefixed: as save_pretrained writes them), a
                                batch, its logits and the gradients of its loss
    gpt2.py check FOLDER        FOLDER/ours.safetensors has the tensors that were made
                                and no other, so that it loads strictly
    gpt2.py decomposed FOLDER   the logits of FOLDER/cut.safetensors, read by
                                abtrain.load_weights
"""
import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python"))
import abtrain

MASKS = (".attn.bias", ".attn.masked_bias")  # no parameters


def model_of():
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(
        vocab_size=97, n_positions=32, n_embd=48, n_layer=3, n_head=4,
        embd_pdrop=0, resid_pdrop=0, attn_pdrop=0,
        bos_token_id=0, eos_token_id=0))


def bare(tensors):
    return {k.removeprefix("transformer."): v.contiguous().clone()
            for k, v in tensors.items() if k != "lm_head.weight"}


def save_logits(model, tokens, path):
    with torch.no_grad():
        save_file({"logits": model(tokens.long()).logits.contiguous()}, path)


def make(folder, form):
    torch.manual_seed(3)
    model = model_of()
    with torch.no_grad():
        for tensor in model.state_dict().values():
            if tensor.dim() == 1:  # zeros and ones would hide mistakes
                tensor.add_(0.1 * torch.rand_like(tensor))
    tensors = bare(model.state_dict())
    if form == "prefixed":
        tensors = {"transformer." + k: v for k, v in tensors.items()}
        tensors["lm_head.weight"] = tensors["transformer.wte.weight"].clone()
    else:
        for i in range(3):
            tensors[f"h.{i}.attn.bias"] = torch.ones(1, 1, 32, 32).tril()
            tensors[f"h.{i}.attn.masked_bias"] = torch.tensor(-1e4)
    save_file(tensors, folder / "theirs.safetensors", {"format": "pt"})
    tokens = torch.randint(97, (2, 25))
    save_file({"tokens": tokens.int()}, folder / "batch.safetensors")
    save_logits(model, tokens, folder / "logits.safetensors")
    model.double()
    logits = model(tokens).logits
    torch.nn.functional.cross_entropy(
        logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()).backward()
    save_file(
        bare({k: p.grad.float() for k, p in model.named_parameters()}),
        folder / "gradients.safetensors")


def check(folder):
    ours = load_file(folder / "ours.safetensors")
    theirs = bare(load_file(folder / "theirs.safetensors"))
    names = {k for k in theirs if not k.endswith(MASKS)}
    if different := set(ours) ^ names:
        sys.exit(f"only one has {', '.join(sorted(different))}")
    for key, tensor in ours.items():
        if not torch.equal(tensor, theirs[key]):
            sys.exit(f"{key} came back changed")
    print(f"{len(ours)} tensors agree")


def decomposed(folder):
    model = model_of()
    weights = bare(abtrain.load_weights(folder / "cut.safetensors"))
    model.transformer.load_state_dict(
        {k: v for k, v in weights.items() if not k.endswith(MASKS)}, strict=True)
    tokens = load_file(folder / "batch.safetensors")["tokens"]
    save_logits(model, tokens, folder / "cut_logits.safetensors")


if __name__ == "__main__":
    torch.set_num_threads(1)
    {"make": make, "check": check, "decomposed": decomposed}[sys.argv[1]](
        pathlib.Path(sys.argv[2]), *sys.argv[3:])
