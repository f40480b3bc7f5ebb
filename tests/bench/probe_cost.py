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
    with tempfile.TemporaryDirectory() as folder:
        preload = [os.path.join(build, name) for name in ("libdshang.so", "libsimcuda.so")]
        env = dict(os.environ, LD_PRELOAD=":".join(preload), PYTHONPATH=os.path.join(build, "simgpu_python"),
                   SIMGPU_DEVICES="2", SIMGPU_NUM="off", SIMGPU_QUIET="1", WORLD_SIZE="2",
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
    print(f"ZeRO-3 step, host time, 2 ranks, simulated GPU, {len(figures['on'])} steps each way")
    for name, on, off in (("elapsed", "on", "off"), ("CPU time of the process", "cpu_on", "cpu_off")):
        with_probe, without = statistics.median(figures[on]), statistics.median(figures[off])
        change = 100 * (with_probe / without - 1)
        print(f"  {name:24} without the probe {without:8.2f} ms, with {with_probe:8.2f} ms: {change:+.2f} %")


main()
