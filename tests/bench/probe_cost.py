"""What the Python probe costs in a ZeRO-3 step that is bound by the host, on 2 simulated GPUs.

    probe_cost.py BUILD [--blocks N] [--steps N]

The step has no device time to hide behind, so this is the worst case.  The library watches in both ways; only the
probe is taken off and put on again (zero3_steps.py)."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def measure(build, blocks, steps):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        preload = [os.path.join(build, name) for name in ("libdshang.so", "libsimcuda.so")]
        env = dict(os.environ, LD_PRELOAD=":".join(preload), PYTHONPATH=os.path.join(build, "simgpu_python"),
                   SIMGPU_DEVICES="2", SIMGPU_NUM="off", SIMGPU_QUIET="1", DSHANG_NUMERICS="1", WORLD_SIZE="2",
                   MASTER_ADDR="127.0.0.1", MASTER_PORT=str(22000 + os.getpid() % 5000),
                   DSHANG_DIR=os.path.join(folder, "dshang"))
        ranks = []
        for rank in range(2):
            command = [sys.executable, os.path.join(HERE, "zero3_steps.py"), str(blocks), str(steps)]
            mine = dict(env, RANK=str(rank), LOCAL_RANK=str(rank))
            with open(f"{folder}/out.{rank}", "w") as out, open(f"{folder}/err.{rank}", "w") as err:
                ranks.append(subprocess.Popen(command, env=mine, stdout=out, stderr=err))
        try:
            ends = [rank.wait(timeout=1200) for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
        if any(ends):
            with open(os.path.join(folder, "err.%d" % (0 if ends[0] else 1))) as err:
                raise SystemExit(f"ranks ended with {ends}:\n{err.read()[-3000:]}")
        with open(os.path.join(folder, "out.0")) as out:
            return json.loads(next(line for line in out if line.startswith('{"on"')))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--blocks", type=int, default=24)
    parser.add_argument("--steps", type=int, default=12)
    options = parser.parse_args()
    figures = measure(os.path.abspath(options.build), options.blocks, options.steps)
    pairs, median = list(zip(figures["on"], figures["off"])), statistics.median
    print(f"ZeRO-3 step, host time, 2 ranks, simulated GPU, {len(pairs)} pairs of blocks, "
          f"the fastest of {len(pairs[0][0])} steps of each")
    for position, name in enumerate(("elapsed", "CPU time of Python's threads")):
        def of(block):
            return min(step[position] for step in block)              # what else the machine does only adds
        changes = sorted(100 * (of(on) / of(off) - 1) for on, off in pairs)
        without = median(of(off) for _, off in pairs)
        quarter = len(changes) // 4
        print(f"  {name:30} without the probe {without:8.2f} ms, with it {median(changes):+.2f} % "
              f"(half of the pairs {changes[quarter]:+.2f} to {changes[-1 - quarter]:+.2f} %)")
    counted = figures["counted"]
    total = sum(count * cost for count, cost in counted.values()) / 1e3
    cpu = median(min(step[1] for step in block) for block in figures["off"])
    looks = sum(count * cost for name, (count, cost) in counted.items() if name.startswith("look")) / 1e3
    print(f"  of this numerics: {looks:.2f} ms a step, {100 * looks / cpu:.2f} %")
    print(f"  counted: {total:.2f} of {cpu:.1f} ms CPU time a step, {100 * total / cpu:.2f} %: " +
          ", ".join(f"{count} x {cost:.1f} us {name}" for name, (count, cost) in counted.items()))


main()
