#!/usr/bin/env python3
"""Compares language models with nanoGPT's recipe for CPUs in plain PyTorch: the time of
a step, and what is learned in the same time.

    bench/text_vs_torch.py steps [--features 128 512] [--rounds 5] [--ratio 10]
    bench/text_vs_torch.py learn [--configs gcide_gpt gcide_gpt_ddp] [--steps 2000]
                                 [--rivals 12:1e-3 48:2e-3]

PyTorch trains the same network: fused attention, tied head, fused AdamW, a ready
batch in `steps`, windows at random offsets in `learn`. abtrain's steps are its whole
loop with the loader. `steps` takes turns, one worker and --threads threads for both,
PyTorch eager and compiled (torch.compile) in the same --precision, and prints medians
over the rounds: dense / the faster form of PyTorch, and the AB step / the dense one at
--ratio. `learn` runs each configuration as it is, then PyTorch on all cores
for as many seconds as the slowest of them has trained, its rate falling along a cosine
of that time. --rivals gives windows per step and highest rate of each PyTorch run: 12:1e-3
is nanoGPT's own recipe, 48:2e-3 the windows of four workers. All are scored on the same
tail of the text. Needs a Python with torch; --set goes to abtrain.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[1]
VOCABULARY, CONTEXT, BATCH, LAYERS = 256, 64, 12, 4
TAIL = 0.005  # test_share of gcide_gpt.yaml
# Where `data: {name: gcide}` lies.
GCIDE = [Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "abtrain/data/gcide/gcide.dict.dz",
         Path("/usr/share/dictd/gcide.dict.dz")]


class Block(nn.Module):
    def __init__(self, features, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(features), nn.LayerNorm(features)
        self.c_attn = nn.Linear(features, 3 * features)
        self.attn_proj = nn.Linear(features, features)
        self.c_fc = nn.Linear(features, 4 * features)
        self.mlp_proj = nn.Linear(4 * features, features)

    def forward(self, x):
        batch, tokens, features = x.shape
        q, k, v = (part.view(batch, tokens, self.heads, -1).transpose(1, 2)
                   for part in self.c_attn(self.ln_1(x)).split(features, 2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn_proj(mixed.transpose(1, 2).reshape(x.shape))
        return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, features, heads, vocabulary=VOCABULARY, context=CONTEXT, layers=LAYERS):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, features)
        self.wpe = nn.Embedding(context, features)
        self.blocks = nn.ModuleList(Block(features, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(features)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                scale = (2 * layers) ** -0.5 if "_proj" in name else 1
                nn.init.normal_(weight, std=0.02 * scale)
            elif name.endswith("bias"):
                nn.init.zeros_(weight)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight[:tokens.size(1)]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)


class Steps:
    def __init__(self, features, heads, rate, compiled=False, precision="fp32"):
        self.model = Gpt(features, heads)
        self.forward = torch.compile(self.model) if compiled else self.model
        self.autocast = torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16")
        large = [p for p in self.model.parameters() if p.dim() == 2]
        small = [p for p in self.model.parameters() if p.dim() < 2]
        self.optimizer = torch.optim.AdamW(
            [{"params": large, "weight_decay": 0.1}, {"params": small, "weight_decay": 0}],
            lr=rate, betas=(0.9, 0.99), fused=True)

    def step(self, inputs, labels):
        self.optimizer.zero_grad(set_to_none=True)
        with self.autocast:
            loss = F.cross_entropy(self.forward(inputs).flatten(0, 1), labels.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()


def train(arguments, folder, config, *sets):
    words = [arguments.program, "--config", str(ROOT / "configs" / f"{config}.yaml"),
             "--output", folder, "--overwrite"]
    for entry in [*sets, *arguments.set]:
        words += ["--set", entry]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    run = Path(folder) / config
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return json.loads((run / "summary.json").read_text()), [json.loads(e) for e in lines]


def our_steps(arguments, features, heads):
    """Milliseconds of a dense and of an AB step: medians over stretches of 5 steps."""
    with tempfile.TemporaryDirectory() as folder:
        events = train(
            arguments, folder, "gcide_gpt", "workers=1", f"train.threads={arguments.threads}",
            f"train.precision={arguments.precision}", f"model.features={features}",
            f"model.heads={heads}", "train.steps=60", "schedule.warmup_steps=1",
            "method.trains=one", "method.group_size=1", "method.sync=only-b",
            "method.warmup_steps=30", "method.sync_every=1000", "method.anneal_steps=0",
            "optimizer={name: adamw, lr: 1e-3, weight_decay: 0.1, beta2: 0.99, scale: match_rms}",
            f"method.rank={{rule: ratio, ratio: {arguments.ratio}}}", "train.log_every=5",
            "evaluate.every=0", "checkpoint.every=0", "data.test_share=1e-4")[1]
    tokens = BATCH * CONTEXT
    return [statistics.median(
        1e3 * tokens / e["tokens_per_second"] for e in events
        if e["event"] == "step" and e["phase"] == phase and e["step"] not in (5, 35))
        for phase in ("full", "ab")]


def compare_steps(arguments):
    torch.set_num_threads(arguments.threads)
    for features in arguments.features:
        heads = max(1, features // 64) if features > 128 else 4
        rivals = {form: Steps(features, heads, 1e-3, form == "compiled", arguments.precision)
                  for form in ("eager", "compiled")}
        window = torch.randint(VOCABULARY, (BATCH, CONTEXT + 1))
        inputs, labels = window[:, :-1].contiguous(), window[:, 1:].contiguous()
        times = {name: [] for name in (*rivals, "dense", "AB")}
        for _ in range(arguments.rounds):
            for form, rival in rivals.items():
                seconds = []
                for _ in range(30):
                    start = time.perf_counter()
                    rival.step(inputs, labels)
                    seconds.append(time.perf_counter() - start)
                times[form].append(1e3 * statistics.median(seconds[5:]))
            for name, value in zip(("dense", "AB"), our_steps(arguments, features, heads)):
                times[name].append(value)
        ms = {name: statistics.median(values) for name, values in times.items()}
        print(f"{features} features, {arguments.precision}, {arguments.threads} threads, "
              f"ratio {arguments.ratio:g}:1", flush=True)
        for name, values in times.items():
            print(f"  {name:8} {ms[name]:8.2f} ms  ({min(values):.2f} to {max(values):.2f})")
        print(f"  dense / torch {ms['dense'] / min(ms[form] for form in rivals):.3f}")
        print(f"  AB / dense    {ms['AB'] / ms['dense']:.3f}", flush=True)


@torch.no_grad()
def bits_per_byte(model, tail):
    count = (len(tail) - 1) // CONTEXT
    inputs = tail[:count * CONTEXT].view(count, CONTEXT)
    labels = tail[1:count * CONTEXT + 1].view(count, CONTEXT)
    loss = sum(F.cross_entropy(model(a).flatten(0, 1), b.flatten(), reduction="sum").item()
               for a, b in zip(inputs.split(256), labels.split(256)))
    return loss / math.log(2) / labels.numel()


def learn(arguments):
    import gzip
    seconds = 0
    with tempfile.TemporaryDirectory() as folder:
        for config in arguments.configs:
            summary, _ = train(arguments, folder, config, f"train.steps={arguments.steps}")
            trained = summary["seconds"]["train"]
            seconds = max(seconds, trained)
            print(f"{config:24} {summary['bits_per_byte']:.4f} bits per byte, {trained:.0f} s, "
                  f"{summary['traffic']['bytes_per_worker'] / 1e6:.1f} MB sent", flush=True)
    with gzip.open(arguments.text, "rb") as file:
        text = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).long()
    end = len(text) - round(TAIL * len(text))
    for windows, rate in arguments.rivals:
        model, steps = learn_torch(text[:end], windows, rate, seconds)
        print(f"{f'PyTorch {windows}:{rate:g}':24} {bits_per_byte(model, text[end:]):.4f} bits per byte, "
              f"{seconds:.0f} s, {steps} steps", flush=True)


def learn_torch(text, windows, rate, seconds):
    """nanoGPT's schedule over a stretch of time: (the model, its steps)."""
    torch.manual_seed(1)
    rival = Steps(128, 4, rate)
    start, steps = time.perf_counter(), 0
    while (done := (time.perf_counter() - start) / seconds) < 1:
        falling = 1e-4 + (rate - 1e-4) * (1 + math.cos(math.pi * done)) / 2
        for group in rival.optimizer.param_groups:
            group["lr"] = falling * min(1, (steps + 1) / 100)
        places = torch.randint(len(text) - CONTEXT - 1, (windows, 1)) + torch.arange(CONTEXT + 1)
        batch = text[places]
        rival.step(batch[:, :-1], batch[:, 1:])
        steps += 1
    return rival.model, steps


def rival_of(text):
    windows, rate = text.split(":")
    return int(windows), float(rate)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["steps", "learn"])
    parser.add_argument("--program", default=str(ROOT / "build/release/abtrain"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="bf16")
    parser.add_argument("--ratio", type=float, default=10)
    parser.add_argument("--features", type=int, nargs="+", default=[128, 512])
    parser.add_argument("--configs", nargs="+", default=["gcide_gpt", "gcide_gpt_ddp"])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--rivals", type=rival_of, nargs="+", default=[(12, 1e-3), (48, 2e-3)],
                        metavar="WINDOWS:RATE")
    parser.add_argument("--text", default=str(next(filter(Path.exists, GCIDE), GCIDE[0])))
    parser.add_argument("--set", action="append", default=[])
    arguments = parser.parse_args()
    {"steps": compare_steps, "learn": learn}[arguments.what](arguments)


if __name__ == "__main__":
    sys.exit(main())
