"""Steps of PEFT's adapters, and what PEFT makes of ours.

adapter.py steps FOLDER INIT STEPS LR ALPHA RANK reads base.safetensors (a network of three linear
layers), first.safetensors (lora_A and lora_B of fc1 and fc2), x.safetensors (x and y), trains
with AdamW on the whole batch, and writes rest.safetensors (what PEFT freezes) and
after.safetensors (the merged network). INIT: true (LoRA, from first.safetensors) or pissa.
adapter.py load FOLDER ADAPTER reads base.safetensors and x.safetensors, and writes
outputs.safetensors: those of the network with the adapter.
"""

import os
import sys
import warnings

import torch
from safetensors.torch import load_file, save_file

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.filterwarnings("ignore")
from peft import LoraConfig, PeftModel, get_peft_model  # noqa: E402


class Network(torch.nn.Module):
    def __init__(self, state):
        super().__init__()
        for name in ("fc1", "fc2", "fc3"):
            outputs, inputs = state[name + ".weight"].shape
            setattr(self, name, torch.nn.Linear(inputs, outputs))
        self.load_state_dict(state)

    def forward(self, x):
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x)))))


def steps(folder, init, count, lr, alpha, rank):
    torch.manual_seed(0)
    model = get_peft_model(
        Network(load_file(f"{folder}/base.safetensors")),
        LoraConfig(
            r=rank,
            lora_alpha=alpha,
            target_modules=["fc1", "fc2"],
            init_lora_weights=True if init == "true" else init,
        ),
    )
    if init == "true":
        first = load_file(f"{folder}/first.safetensors")
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                layer, kind = name.split(".")[-4], name.split(".")[-3]
                parameter.data.copy_(first[f"{layer}.{kind}"])
    rest = {
        name.split(".")[-3]: p.data.clone().contiguous()
        for name, p in model.named_parameters()
        if name.endswith("base_layer.weight")
    }
    save_file(rest, f"{folder}/rest.safetensors")
    data = load_file(f"{folder}/x.safetensors")
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=lr, weight_decay=0)
    for _ in range(count):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(data["x"]), data["y"].long()).backward()
        optimizer.step()
    merged = model.merge_and_unload().state_dict()
    save_file(
        {name: tensor.contiguous() for name, tensor in merged.items()},
        f"{folder}/after.safetensors",
    )


def load(folder, adapter):
    network = Network(load_file(f"{folder}/base.safetensors"))
    model = PeftModel.from_pretrained(network, adapter)
    with torch.no_grad():
        outputs = model(load_file(f"{folder}/x.safetensors")["x"])
    save_file({"outputs": outputs}, f"{folder}/outputs.safetensors")


if __name__ == "__main__":
    what, arguments = sys.argv[1], sys.argv[2:]
    if what == "steps":
        folder, init, count, lr, alpha, rank = arguments
        steps(folder, init, int(count), float(lr), float(alpha), int(rank))
    else:
        load(*arguments)
