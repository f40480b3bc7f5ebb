"""`dshang explain` on logs of several kinds, beside `grep -c` of the same patterns.

explain_speed.py BUILD [--megabytes 300] [--runs 3]

Compared is processor time, which a loaded machine changes little; the files are in the page cache.  grep looks for the catalogue's
patterns as one extended expression, in the C locale, and only counts lines; explain also follows losses, steps and tracebacks."""
import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile

ASKED = 300  # MB a second and core


def log_lines(kind, number):
    """Endless lines of one kind."""
    rng = random.Random(7)
    words = "tokenizer batch sequence length padding collate worker prefetch cached memory mapped column feature dataset".split()
    for i in range(number, sys.maxsize):
        loss = f"{{'loss': {2 + rng.random():.4f}, 'grad_norm': {1 + rng.random():.4f}, 'learning_rate': 1e-05, 'epoch': {i / 1000}}}\n"
        text = (f"2026-11-02 10:00:00 INFO data.loader - sample {i} of shard {i % 77}: {rng.choice(words)} {rng.choice(words)} read in {i % 13} ms "
                f"from /data/train/part-{i % 77:05d}.parquet\n")
        if kind == "text":
            yield text
        elif kind == "losses":
            yield loss
        elif kind == "NCCL":
            yield (f"worker-1:311:380 [0] NCCL INFO AllReduce: opCount {i:x} sendbuff 0x7f1928e6e060 recvbuff 0x7f1928e6e060 count {i * 3} "
                   f"datatype 9 op 0 root 0 comm 0x55 [nranks=16] stream 0x5\n")
        elif kind == "ranks":
            yield f"[rank{i % 16}]: {text}"
        else:
            yield (text, loss, f"\r{i % 100}%|####      | {i}/9000000 [00:10<01:00,  9.23it/s]",
                   f"[2026-11-02 10:00:00,100] [INFO] [logging.py:128:log_dist] [Rank 0] step={i}, skipped=0, lr=[1e-05], mom=[(0.9, 0.999)]\n")[i % 4]


def write(path, kind, size):
    """A piece of lines, again and again."""
    piece = []
    for line in log_lines(kind, 100000):
        piece.append(line)
        if len(piece) == 20000:
            break
    data = "".join(piece).encode()
    with open(path, "wb") as file:
        for _ in range(size // len(data) + 1):
            file.write(data)
    return os.path.getsize(path)


def seconds(command, runs):
    best = None
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, stdout=subprocess.DEVNULL, env=dict(os.environ, LC_ALL="C"))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode not in (0, 1):
            raise SystemExit(f"{command[:3]} ended with status {done.returncode}")
        took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = took if best is None else min(best, took)
    return best


def pattern_for_grep(build):
    entries = json.loads(subprocess.run([f"{build}/dshang", "explain", "--entries", "--json"], capture_output=True, text=True, check=True).stdout)
    patterns = [pattern for entry in entries["entries"] for pattern in entry["patterns"]]
    plain = "|".join(patterns)
    for perl, posix in ((r"[\d.]", "[0-9.]"), (r"[\d, ]", "[0-9, ]"), (r"\d", "[0-9]"), (r"\S", "[^ ]"), (r"\s", " ")):
        plain = plain.replace(perl, posix)
    return plain


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    pattern, slow = pattern_for_grep(arguments.build), []
    print(f"{'log':8} {'explain':>12} {'grep -cE':>12}   MB a second of processor time")
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("text", "mixed", "NCCL", "ranks", "losses"):
            path = os.path.join(folder, "job.log")
            size = write(path, kind, arguments.megabytes * 1000000) / 1e6
            ours = size / seconds([f"{arguments.build}/dshang", "explain", path], arguments.runs)
            grep = size / seconds(["grep", "-cE", pattern, path], arguments.runs)
            print(f"{kind:8} {ours:12.0f} {grep:12.0f}")
            if ours < ASKED:
                slow.append(kind)
    if slow:
        raise SystemExit(f"below {ASKED} MB a second: {', '.join(slow)}")


if __name__ == "__main__":
    main()
