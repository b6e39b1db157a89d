#!/usr/bin/env python3
"""Decompose the weights of ResNet-50: torch.linalg.svd beside bench_svd.

    bench/svd_vs_torch.py [--program build/release/bench/bench_svd]
                          [--threads 1 2] [--repeats 5] [--share 0.125]

bench_svd times LAPACK's gesdd in its own process too; this script adds Python's
torch.linalg.svd(full_matrices=False), turn by turn with the program, so that
both meet the same load. Prints medians and their ratio. Needs a Python with
torch.
"""
import argparse
import math
import statistics
import subprocess
import time

import torch


def shapes():
    """Output, input and kernel size of every weight."""
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


def weights():
    """Kaiming-normal matrices, m >= n."""
    for out, inputs, kernel in shapes():
        matrix = torch.randn(out, inputs * kernel**2)
        matrix *= math.sqrt(2 / (out * kernel**2))
        yield (matrix.t() if out < matrix.shape[1] else matrix).contiguous()


def torch_seconds(matrices):
    start = time.perf_counter()
    for matrix in matrices:
        torch.linalg.svd(matrix, full_matrices=False)
    return time.perf_counter() - start


def program_seconds(arguments, threads):
    """Seconds of kaiming factors, and the whole table."""
    table = subprocess.run(
        [arguments.program, str(threads), "1", str(arguments.share)],
        check=True, capture_output=True, text=True).stdout
    row = next(r for r in table.splitlines() if r.startswith("kaiming"))
    return float(row.split()[3]) / 1e3, table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/release/bench/bench_svd")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--share", type=float, default=0.125)
    arguments = parser.parse_args()
    matrices = list(weights())
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
