"""PyTorch Flight Recorder dumps, both ways: those of real failures and of the installed torch are read, those that dshang
writes are read by torch's analyser (and in the long part by NVIDIA's), and all say the same of the same hang."""
import argparse
import glob
import json
import os
import pickle
import shutil
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
BUILD = os.path.abspath(os.environ.get("TEST_BUILD", os.path.join(ROOT, "build")))
SAMPLES = os.path.join(HERE, "samples")
GOLDEN = os.path.join(ROOT, "tests", "golden")

sys.path.insert(0, HERE)
import nvidia_analyser  # noqa: E402  (beside this file)


def dshang(*arguments):
    return subprocess.run([os.path.join(BUILD, "dshang"), *map(str, arguments)], capture_output=True, text=True, timeout=60)


def report(*arguments):
    done = dshang("report", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def suspects(report):
    return sorted({rank for finding in report["findings"] for rank in finding["suspects"]})


def dumps_of_golden(case, folder):
    subprocess.run([os.path.join(BUILD, "recorder_jobs"), "snapshot", os.path.join(GOLDEN, case + ".txt"), str(folder)], check=True)
    return folder


def torch_collectives(folder):
    """What torch's analyser makes of the dumps: its own steps, as its main() takes them."""
    from torch.distributed.flight_recorder.components.builder import build_db
    from torch.distributed.flight_recorder.components.config_manager import JobConfig
    from torch.distributed.flight_recorder.components.loader import read_dir

    arguments = JobConfig().parse_args([str(folder)])
    details, version = read_dir(arguments)
    assert isinstance(arguments, argparse.Namespace)
    return build_db(details, arguments, version).collectives


def torch_verdict(folder):
    """(sequence id, ranks it blames, "missing" or "differs") of the first collective that does not match."""
    for one in torch_collectives(folder):
        if one.pass_check and not one.missing_ranks:
            continue
        if one.missing_ranks:
            return one.collective_seq_id, sorted(one.missing_ranks), "missing"
        return one.collective_seq_id, sorted(one.mismatch_collectives), "differs"
    return None


# ---- real dumps -----------------------------------------------------------------------------------------------------


# On these ranks the faults were injected (the data's fault_injection.log).
FAULTS = {"lock_gil_1st": ([9, 14], "host-stall"), "gpu_error_1st": ([12, 14], "rank-frozen")}


@pytest.mark.parametrize("sample", FAULTS)
def test_real_failures(sample):
    faulty, told_as = FAULTS[sample]
    told = report(os.path.join(SAMPLES, sample))
    assert told["job"]["world_size"] == 16
    assert told["verdict"] in ("hang", "warning")
    assert suspects(told) == faulty
    assert {finding["class"] for finding in told["findings"]} == {told_as}
    assert any("Flight Recorder dumps (format 2.9)" in line for line in told["not_checked"])
    blamed = torch_verdict(os.path.join(SAMPLES, sample))[1]
    assert set(blamed) & set(faulty)                              # its first verdict sees one of them at least


def test_missing_ranks_are_said(tmp_path):
    for path in glob.glob(os.path.join(SAMPLES, "lock_gil_1st", "_dump_*")):
        if not path.endswith(("_3", "_4")):
            shutil.copy(path, tmp_path)
    told = report(tmp_path)
    assert any(line.startswith("2 of 16 ranks were not heard from") for line in told["not_checked"])
    assert not {3, 4} & set(suspects(told))


PROGRAM = """
import json, os, sys, time, torch
import torch.distributed as dist
from torch._C import _distributed_c10d
dist.init_process_group("gloo")
rank = dist.get_rank()
for _ in range(3):
    dist.all_reduce(torch.ones(4, 3))
    dist.broadcast(torch.ones(6), 0)
if rank == 0:
    work = dist.all_reduce(torch.ones(7), async_op=True)
unfinished = lambda: [e for e in json.loads(_distributed_c10d._dump_fr_trace_json())["entries"] if not e["retired"]]
while len(unfinished()) != (1 if rank == 0 else 0):               # torch notes an end on a thread of its own
    time.sleep(0.05)
with open(f"{sys.argv[1]}/rank_{rank}", "wb") as file:
    file.write(_distributed_c10d._dump_fr_trace())
with open(f"{sys.argv[2]}/rank_{rank}.json", "w") as file:
    text = _distributed_c10d._dump_fr_trace_json()
    file.write(text if isinstance(text, str) else text.decode())
open(f"{sys.argv[1]}/../done_{rank}", "w").close()
while not os.path.exists(f"{sys.argv[1]}/../done_{1 - rank}"):    # whoever leaves ends the other's call
    time.sleep(0.05)
os._exit(0)
"""


@pytest.fixture(scope="module")
def dumps_of_torch(tmp_path_factory):
    """Both forms, written by the installed torch in a job of two ranks, of which the second makes one call less."""
    folder = tmp_path_factory.mktemp("torch")
    pickles, texts = folder / "pickles", folder / "texts"
    pickles.mkdir(), texts.mkdir()
    (folder / "train.py").write_text(PROGRAM)
    ranks = [subprocess.Popen([sys.executable, str(folder / "train.py"), str(pickles), str(texts)],
                              env=dict(os.environ, RANK=str(r), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", TORCH_FR_BUFFER_SIZE="100",
                                       MASTER_PORT=str(20000 + os.getpid() % 20000))) for r in range(2)]
    assert [rank.wait(timeout=60) for rank in ranks] == [0, 0]
    return pickles, texts


def test_dumps_of_the_installed_torch(dumps_of_torch):
    for folder in dumps_of_torch:
        shown = dshang("report", folder, "--dump")
        assert shown.returncode == 0, shown.stderr
        calls = [line for line in shown.stdout.splitlines() if line.startswith("call ")]
        assert len(calls) == 13 and sum("all_reduce 12 f32" in line for line in calls) == 6
        assert sum("+done" not in line for line in calls) == 1
        # Old files: how long they waited is not known, and taken for long.
        for path in glob.glob(f"{folder}/*"):
            os.utime(path, (2e9, 2e9))
        told = report(folder)
        assert [finding["suspects"] for finding in told["findings"]] == [[1]], told
        assert told["findings"][0]["call"] == 7
        frames = folder == dumps_of_torch[0]                      # the JSON form has none
        site = told["findings"][0]["sides"][0].get("user_site", "")
        assert site.endswith("train.py:11 <module>") if frames else not site
        assert any("the dump has no frames" in line for line in told["not_checked"]) != frames


# ---- never run anything ---------------------------------------------------------------------------------------------


def test_a_dump_that_would_run_something_is_refused(tmp_path):
    marker = tmp_path / "was_run"
    folder = tmp_path / "dumps"
    folder.mkdir()
    payload = b"\x80\x02cposix\nsystem\n(X" + len(f"touch {marker}").to_bytes(4, "little") + f"touch {marker}".encode() + b"tR."
    (folder / "_dump_0").write_bytes(payload)
    done = dshang("report", folder)
    assert done.returncode == 2 and "nothing is run" in done.stderr and len(done.stderr.splitlines()) == 1
    assert not marker.exists()
    shutil.copy(os.path.join(SAMPLES, "lock_gil_1st", "_dump_1"), folder)    # the others are still read
    told = report(folder)
    assert any("_dump_0: not heard from, it cannot be read" in line for line in told["not_checked"])
    assert not marker.exists()


def test_names_in_a_dump_stay_on_their_line(tmp_path):
    dumps_of_golden("argument-mismatch/root", tmp_path)
    for path in tmp_path.iterdir():
        dump = pickle.loads(path.read_bytes())
        for group in dump["pg_config"].values():
            group["desc"] = "a\nHANG [forged]\x1b[2J"
        path.write_bytes(pickle.dumps(dump))
    told = dshang("report", tmp_path).stdout
    assert "forged" in told and not any(line.startswith("HANG [forged]") for line in told.splitlines()) and "\x1b" not in told


def test_two_dumps_of_a_rank_are_refused(tmp_path):
    for name in ("_dump_1", "other_1"):
        shutil.copy(os.path.join(SAMPLES, "lock_gil_1st", "_dump_1"), tmp_path / name)
    done = dshang("report", tmp_path)
    assert done.returncode == 2 and "two dumps of rank 1" in done.stderr


# ---- what dshang writes ---------------------------------------------------------------------------------------------

# Snapshots of tests/golden whose hang can be seen in calls, and how.
HANGS = {"early-return/from_forward": "differs", "argument-mismatch/count": "differs",
         "rank-conditional-call/save_on_rank_0": "differs"}


@pytest.mark.parametrize("case", HANGS)
def test_torch_and_dshang_agree(case, tmp_path):
    dumps = dumps_of_golden(case, tmp_path / "dumps")
    told = report(dumps)
    hangs = [finding for finding in told["findings"] if finding["severity"] == "hang"]
    assert len(hangs) == 1, told
    position, blamed, kind = torch_verdict(dumps)
    assert hangs[0]["call"] == position
    assert kind == HANGS[case]
    # torch blames whoever differs from the first rank that it looks at: the odd one, or all the others.
    sides = [set(side["ranks"]) for side in hangs[0]["sides"]]
    assert set(blamed) in sides or set(hangs[0]["comm_ranks"]) - set(blamed) in sides


def test_where_nobody_differs_neither_singles_anybody_out(tmp_path):
    dumps = dumps_of_golden("unknown-hang/all_inside", tmp_path / "dumps")
    assert torch_verdict(dumps) is None
    assert [finding["suspects"] for finding in report(dumps)["findings"]] == [[]]


def test_export_of_real_dumps_is_read_again(tmp_path):
    sample = os.path.join(SAMPLES, "lock_gil_1st")
    done = dshang("report", sample, "--flight-recorder", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(tmp_path / "out")) == sorted(f"_dump_{r}" for r in range(16))
    first, again = report(sample), report(tmp_path / "out")
    assert suspects(first) == suspects(again) and first["verdict"] == again["verdict"]
    refused = dshang("report", sample, "--flight-recorder", tmp_path / "out")
    assert refused.returncode == 2 and "is not empty" in refused.stderr


if os.environ.get("E2E_LONG") == "1":                             # it is downloaded
    def test_nvidia_s_analyser_agrees(tmp_path):
        analyser = nvidia_analyser.load(nvidia_analyser.fetch(tmp_path))
        for sample, theirs in (("lock_gil_1st", [9, 14]), ("gpu_error_1st", [12])):
            assert nvidia_analyser.analyse(analyser, os.path.join(SAMPLES, sample))[1] == theirs
            assert set(theirs) <= set(suspects(report(os.path.join(SAMPLES, sample))))
        # Written by dshang and read again by theirs, they are the same dumps.
        assert dshang("report", os.path.join(SAMPLES, "lock_gil_1st"), "--flight-recorder", tmp_path / "again").returncode == 0
        assert nvidia_analyser.analyse(analyser, tmp_path / "again")[1] == [9, 14]
        # A rank that has left out a call: it has made fewer than the others.
        dumps = tmp_path / "large"
        subprocess.run([os.path.join(BUILD, "recorder_jobs"), "missing", "8", "100", str(dumps)], check=True)
        assert nvidia_analyser.analyse(analyser, dumps)[1] == suspects(report(dumps)) == [4]
        assert torch_verdict(dumps)[1:] == ([4], "missing")
