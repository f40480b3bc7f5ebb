"""Reading and analysing the same Flight Recorder dumps: `dshang report`, torch's analyser, and NVIDIA's.

recorder_speed.py BUILD [--ranks 64] [--calls 2000] [--runs 3] [--without-nvidia]

Compared is processor time, because all three use one thread and a loaded machine changes it little.  Of the others it is
that in their own functions, without starting Python and importing torch; of dshang that of the whole program.  NVIDIA's
package is downloaded."""
import argparse
import contextlib
import os
import resource
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "recorder"))
import nvidia_analyser  # noqa: E402

ASKED = 0.1  # of the faster of the two


def of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds(function, runs=1, clock=time.process_time):
    """The best of the runs: whatever disturbs makes it longer."""
    best = None
    for _ in range(runs):
        start = clock()
        function()
        took = clock() - start
        best = took if best is None else min(best, took)
    return best


def of_dshang(build, folder, suspect):
    done = subprocess.run([os.path.join(build, "dshang"), "report", folder], capture_output=True, text=True, check=True)
    if f"suspected: rank {suspect}\n" not in done.stdout:
        raise SystemExit("dshang does not find the rank:\n" + done.stdout)


def of_torch(folder):
    from torch.distributed.flight_recorder.components.builder import build_db
    from torch.distributed.flight_recorder.components.config_manager import JobConfig
    from torch.distributed.flight_recorder.components.loader import read_dir
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):
        arguments = JobConfig().parse_args([folder])
        details, version = read_dir(arguments)
        database = build_db(details, arguments, version)
    if all(one.pass_check for one in database.collectives):
        raise SystemExit("torch's analyser finds nothing")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--without-nvidia", action="store_true")
    parser.add_argument("--folder", help="dumps that are there, whose odd rank is RANKS / 2, instead of new ones")
    options = parser.parse_args()
    import logging
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or os.path.join(scratch, "dumps")
        if not options.folder:
            subprocess.run([os.path.join(options.build, "recorder_jobs"), "large", str(options.ranks), str(options.calls), folder],
                           check=True)
        size = sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder))
        print(f"{options.ranks} ranks x {options.calls} calls, {size / 1e6:.1f} MB of dumps; seconds of processor time")
        ours = seconds(lambda: of_dshang(options.build, folder, options.ranks // 2), options.runs, of_children)
        others = {"torch": seconds(lambda: of_torch(folder))}
        if not options.without_nvidia:
            analyser = nvidia_analyser.load(nvidia_analyser.fetch(scratch))
            with open(os.devnull, "w") as nothing, contextlib.redirect_stderr(nothing):
                others["nvidia"] = seconds(lambda: nvidia_analyser.analyse(analyser, folder))
        print(f"dshang report (whole program): {ours:.3f} s")
        for name, took in others.items():
            print(f"{name}'s analyser (in its functions, imported before): {took:.2f} s")
        share = ours / min(others.values())
        print(f"{share:.3f} of the faster of them; asked: <= {ASKED}")
        return 0 if share <= ASKED else 1


sys.exit(main())
