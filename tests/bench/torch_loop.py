"""Compares all_reduce_loop.py bare, with torch's own aids, and with dshang, on 2 simulated GPUs.

    torch_loop.py BUILD [--pairs N]

Every way runs once in each round, so that a slow moment of the machine falls on all; each figure is the median over the
rounds of the ratio to the bare run of the same round.  Rounds of one process pair each: nothing is reused."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
OFF = {"TORCH_FR_BUFFER_SIZE": "0", "TORCH_NCCL_TRACE_BUFFER_SIZE": "0"}
WAYS = [
    ("bare", False, OFF),
    ("flight recorder 2000", False, {"TORCH_FR_BUFFER_SIZE": "2000", "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000"}),
    ("flight recorder 20000", False, {"TORCH_FR_BUFFER_SIZE": "20000", "TORCH_NCCL_TRACE_BUFFER_SIZE": "20000"}),
    ("TORCH_DISTRIBUTED_DEBUG=DETAIL", False, {**OFF, "TORCH_DISTRIBUTED_DEBUG": "DETAIL"}),
    ("dshang, no marks", True, {**OFF, "DSHANG_GPU_MARKS": "0"}),
    ("dshang", True, OFF),
]


def measure(build, with_dshang, settings, port, bursts, calls):
    """Runs two ranks; returns what rank 0 measured."""
    preload = [os.path.join(build, "libsimcuda.so")]
    if with_dshang:
        preload.insert(0, os.path.join(build, "libdshang.so"))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        env = dict(os.environ, LD_PRELOAD=":".join(preload), PYTHONPATH=os.path.join(build, "simgpu_python"),
                   SIMGPU_DEVICES="2", SIMGPU_NUM="off", SIMGPU_QUIET="1", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                   MASTER_PORT=str(port), DSHANG_DIR=os.path.join(folder, "dshang"), **settings)
        ranks = [subprocess.Popen([sys.executable, os.path.join(HERE, "all_reduce_loop.py"), str(bursts), str(calls)],
                                  env=dict(env, RANK=str(rank), LOCAL_RANK=str(rank)), stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) for rank in range(2)]
        try:
            outputs = [rank.communicate(timeout=600) for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
        for rank, (_, errors) in zip(ranks, outputs):
            if rank.returncode:
                raise SystemExit(f"a rank ended with {rank.returncode}:\n{errors[-2000:]}")
        return json.loads(outputs[0][0].strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--bursts", type=int, default=30)
    parser.add_argument("--calls", type=int, default=200)
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    rounds = []
    for number in range(options.pairs):
        rounds.append({name: measure(build, with_dshang, settings, 21000 + 10 * number + position, options.bursts, options.calls)
                       for position, (name, with_dshang, settings) in enumerate(WAYS)})
    median = statistics.median
    print(f"dist.all_reduce, host time a call, 2 ranks, simulated GPU, median of {options.pairs} interleaved rounds")
    for name, _, _ in WAYS:
        us, ratio = median(r[name]["us"] for r in rounds), median(r[name]["us"] / r["bare"]["us"] for r in rounds)
        more = median(r[name]["mib"] - r["bare"]["mib"] for r in rounds)
        print(f"  {name:32} {us:8.2f} us   x {ratio:.3f} of bare   resident {more:+7.1f} MiB a rank")


if __name__ == "__main__":
    main()
