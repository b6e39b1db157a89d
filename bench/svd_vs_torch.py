#!/usr/bin/env python3
"""Times the decomposition of ResNet-50's weights: torch.linalg.svd and bench_svd.

    bench/svd_vs_torch.py [--program build/release/bench/bench_svd]
                          [--threads 1 2] [--repeats 5] [--share 0.125]
    bench/svd_vs_torch.py --device cuda --model vgg16|resnet50 [--repeats 3]

bench_svd times LAPACK's gesdd in its own process too; this script adds Python's
torch.linalg.svd(full_matrices=False). It takes turns with the program, so that
both meet the same load. Prints medians and their ratio. On a GPU the fastest of
torch's drivers (its default, gesvdj, gesvd), each over all layers, is compared,
and bench_svd decomposes by rank rule. Needs a Python with torch.
"""
import argparse
import math
import statistics
import subprocess
import time

import torch


def shapes():
    """Outputs, inputs and kernel size of every weight of ResNet-50."""
    result = [(64, 3, 7)]
    for blocks, width, inputs in ((3, 64, 64), (4, 128, 256), (6, 256, 512),
                                  (3, 512, 1024)):
        for block in range(blocks):
            result += [(width, inputs, 1), (width, width, 3),
                       (4 * width, width, 1)]
            if block == 0:
                result.append((4 * width, inputs, 1))
            inputs = 4 * width
    return result + [(1000, 2048, 1)]


def vgg16_shapes():
    """The same for the weights of timm's vgg16 that AB-training may factor."""
    result, inputs = [], 64
    for width in (64, 128, 128, 256, 256, 256) + 6 * (512,):
        result.append((width, inputs, 3))
        inputs = width
    return result + [(4096, 512, 7), (4096, 4096, 1)]


def weights(layers):
    """Kaiming-normal matrices, with m >= n."""
    for out, inputs, kernel in layers:
        matrix = torch.randn(out, inputs * kernel**2)
        matrix *= math.sqrt(2 / (out * kernel**2))
        yield (matrix.t() if out < matrix.shape[1] else matrix).contiguous()


def torch_seconds(matrices):
    start = time.perf_counter()
    for matrix in matrices:
        torch.linalg.svd(matrix, full_matrices=False)
    return time.perf_counter() - start


def program_seconds(arguments, threads):
    """Seconds for the factors of the kaiming spectrum, and the whole table."""
    table = subprocess.run(
        [arguments.program, str(threads), "1", str(arguments.share)],
        check=True, capture_output=True, text=True).stdout
    row = next(r for r in table.splitlines() if r.startswith("kaiming"))
    return float(row.split()[3]) / 1e3, table


def gpu_seconds(matrices, driver):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for matrix in matrices:
        torch.linalg.svd(matrix, full_matrices=False, driver=driver)
    torch.cuda.synchronize()
    return time.perf_counter() - start


def on_gpu(arguments):
    layers = shapes() if arguments.model == "resnet50" else vgg16_shapes()
    matrices = [matrix.cuda() for matrix in weights(layers)]
    rivals = {}
    for driver in (None, "gesvdj", "gesvd"):
        gpu_seconds(matrices[:2], driver)
        rivals[driver or "default"] = min(
            gpu_seconds(matrices, driver) for _ in range(arguments.repeats))
        print(f"torch.linalg.svd, driver {driver or 'default'}: "
              f"{rivals[driver or 'default']:.3f} s", flush=True)
    best = min(rivals.values())
    del matrices
    torch.cuda.empty_cache()
    table = subprocess.run(
        [arguments.program, "--model", arguments.model, "--device", "cuda",
         "--repeats", str(arguments.repeats)],
        check=True, capture_output=True, text=True).stdout
    print(table, end="")
    for row in table.splitlines():
        words = row.split()
        if words and words[0] in ("orthogonal", "kaiming", "trained"):
            seconds = float(words[2]) / 1e3
            print(f"{words[0]} {words[1]}: {seconds:.3f} s, "
                  f"{best / seconds:.1f} times faster than torch's best")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/release/bench/bench_svd")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--share", type=float, default=0.125)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--model", choices=("vgg16", "resnet50"),
                        default="resnet50")
    arguments = parser.parse_args()
    if arguments.device == "cuda":
        on_gpu(arguments)
        return
    if arguments.model != "resnet50":
        parser.error("--model vgg16 is for --device cuda")
    matrices = list(weights(shapes()))
    for threads in arguments.threads:
        torch.set_num_threads(threads)
        torch_seconds(matrices[:10])
        ours, theirs = [], []
        for _ in range(arguments.repeats):
            theirs.append(torch_seconds(matrices))
            seconds, table = program_seconds(arguments, threads)
            ours.append(seconds)
        print(table, end="")
        print(f"{len(matrices)} matrices, {threads} thread(s), medians of "
              f"{arguments.repeats}: torch.linalg.svd "
              f"{statistics.median(theirs):.3f} s, bench_svd "
              f"{statistics.median(ours):.3f} s, ratio "
              f"{statistics.median(ours) / statistics.median(theirs):.3f}\n")


if __name__ == "__main__":
    main()
