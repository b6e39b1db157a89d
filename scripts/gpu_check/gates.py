"""The gates: what has to be reached. A gate reads the figures of parts, from this call or
earlier ones; where one of them is missing, the gate is not measured."""

# Steps of a whole run of vgg16_cifar10.yaml: a shorter one cannot reach a gate.
WHOLE = 15000


class Gate:
    def __init__(self, name, wanted, look):
        self.name, self.wanted, self.look = name, wanted, look

    def verdict(self, figures, rehearse):
        """Returns (what was seen, yes | no | rehearsed | not measured)."""
        try:
            seen, good = self.look(figures)
        except KeyError:
            return "", "not measured"
        return seen, "rehearsed" if rehearse else "yes" if good else "no"


def tests(f):
    t = f["tests"]
    return (f"{t['passed']} passed, {t['failed']} failed, {t['skipped']} skipped",
            t["failed"] == 0 and t["passed"] > 0)


def clean(kind):
    return lambda f: (f["sanitizer"][kind], f["sanitizer"][kind + "_clean"])


def cut_short(*runs):
    short = [run["steps"] for run in runs if run["steps"] != WHOLE]
    return f" (only {min(short)} of {WHOLE} steps)" if short else ""


def accuracy(f):
    ab, ddp = f["vgg16_ab"], f["vgg16_ddp"]
    short = cut_short(ab, ddp)
    return (f"{100 * ab['accuracy']:.2f} %, data parallel {100 * ddp['accuracy']:.2f} %{short}",
            ab["accuracy"] >= ddp["accuracy"] - 0.005 and not short)


def accuracy_in_time(f):
    ab, ddp = f["vgg16_ab"], f["vgg16_ddp_time"]
    short = cut_short(ab)
    small = f.get("vgg16_small_time")
    text = f", small dense network {100 * small['accuracy']:.2f} %" if small else ""
    return (f"{100 * ab['accuracy']:.2f} %, data parallel {100 * ddp['accuracy']:.2f} %{text}{short}",
            ab["accuracy"] > ddp["accuracy"] and not short)


def compression(f):
    run = f["vgg16_ab"]
    short = cut_short(run)
    return f"{run['compression']:.2f}:1{short}", run["compression"] >= 44 and not short


def traffic(name, most):
    def look(f):
        run = f[name]
        short = cut_short(run)
        return f"{100 * run['traffic']:.1f} %{short}", run["traffic"] <= most and not short
    return look


def wall(name):
    def look(f):
        run = f[name]
        short = cut_short(run)
        return (f"{run['wall_s']:.0f} s, {run['ms_a_step']:.1f} ms per step{short}",
                run["wall_s"] < 600 and not short)
    return look


def step_ratio(model, over, under, most):
    """The faster one counts of several forms `under`."""
    def look(f):
        times = {**f["step"][model], **f.get("step_torch", {}).get(model, {})}
        best = min((times[form]["ms"] for form in under if form in times), default=None)
        if best is None:
            raise KeyError(under)
        ratio = times[over]["ms"] / best
        return f"{ratio:.3f} ({times[over]['ms']:.2f} and {best:.2f} ms)", ratio <= most
    return look


def svd_seconds(model, most):
    return lambda f: (f"{f['svd'][model]['abtrain_s']:.3f} s",
                      f["svd"][model]["abtrain_s"] < most)


def svd_ratio(model):
    def look(f):
        theirs = f["svd_torch"][model]["torch_s"]
        ratio = theirs / f["svd"][model]["abtrain_kaiming_s"]
        return f"{ratio:.2f} times ({theirs:.3f} s there)", ratio >= 5
    return look


def augment(f):
    share, batch = f["kernels"]["augment_share"], f["kernels"]["batch"]
    return (f"at least {100 * share:.0f} % at batches of {batch}",
            share >= 0.7 and batch >= 8192)


def packing(f):
    shares = f["kernels"]["packing_shares"]
    if not shares:
        raise KeyError("packing_shares")
    name, share = min(shares.items(), key=lambda item: item[1])
    return f"at least {100 * share:.0f} % ({name})", share >= 0.6


def adagrad(f):
    share = f["adagrad"]["threshold"]["share_of_step"]
    return f"{100 * share:.1f} %", share <= 0.15


GATES = [
    Gate("tests labeled gpu", "all pass", tests),
    Gate("memcheck of the kernels", "clean", clean("memcheck")),
    Gate("racecheck of the kernels", "clean", clean("racecheck")),
    Gate("VGG16 accuracy, AB, merged model", "at most 0.5 points below data parallel", accuracy),
    Gate("VGG16 accuracy at equal time, AB, merged model", "above data parallel",
         accuracy_in_time),
    Gate("VGG16 compression", "at least 44:1", compression),
    Gate("VGG16 traffic, AB", "at most 40 % of fp32 data parallel", traffic("vgg16_ab", 0.4)),
    Gate("VGG16 traffic, frugal", "at most 20 % of fp32 data parallel",
         traffic("vgg16_frugal", 0.2)),
    Gate("VGG16 whole run, AB", "under 600 s", wall("vgg16_ab")),
    Gate("VGG16 whole run, data parallel", "under 600 s", wall("vgg16_ddp")),
    Gate("VGG16 whole run, frugal", "under 600 s", wall("vgg16_frugal")),
    Gate("vgg16 step, AB / dense", "at most 0.5",
         step_ratio("vgg16", "ab_graphs", ["dense_graphs"], 0.5)),
    Gate("vgg16 AB step, with / without graphs", "at most 0.77",
         step_ratio("vgg16", "ab_graphs", ["ab"], 0.77)),
    *(Gate(f"{model} step, dense / PyTorch", "at most 1",
           step_ratio(model, "dense_graphs", ["torch_eager", "torch_benchmark"], 1))
      for model in ("vgg16", "vgg16-small", "resnet18", "vit-tiny", "gpt-small")),
    Gate("VGG16 decomposition", "under 1.5 s", svd_seconds("vgg16", 1.5)),
    Gate("VGG16 decomposition, torch.linalg.svd / abtrain", "at least 5", svd_ratio("vgg16")),
    Gate("ResNet-50 decomposition", "under 0.3 s", svd_seconds("resnet50", 0.3)),
    Gate("ResNet-50 decomposition, torch.linalg.svd / abtrain", "at least 5",
         svd_ratio("resnet50")),
    Gate("quantized Adagrad's own work", "at most 15 % of the MLP's step", adagrad),
    Gate("packing kernels", "at least 60 % of a copy's bandwidth", packing),
    Gate("augmentation kernel", "at least 70 % of a copy's bandwidth, large batches", augment),
]
