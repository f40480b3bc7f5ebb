"""How ranks come into being: forked, spawned, served; and nodes that look like one."""
import json
import subprocess
import sys

import pytest
from reach_job import BUILD, ROOT, said, wait_for

RANK = """
import os, sys, time
sys.path.insert(0, %r)

def rank(number, world):
    os.environ.update(RANK=str(number), LOCAL_RANK=str(number), WORLD_SIZE=str(world))
    from gpu import Gpu
    process = Gpu()
    comm, stream = process.meet(), process.stream()
    for _ in range(4): process.all_reduce(comm, stream)
    process.sync(stream)
    time.sleep(0.3)
""" % str(ROOT / "tests" / "reach" / "programs")


def check_ranks(job, pids, world):
    processes = job.records()
    assert [process.rank for process in processes] == list(range(world))
    assert sorted(process.pid for process in processes) == sorted(pids)
    assert len({process.comms[0]["id"] for process in processes}) == 1
    for process in processes:
        assert process.ops() == ["all_reduce"] * 4 and process.ending == "exit 0"
        assert "rank" in process.calls[0].frames[-1] or len(process.calls[0].frames) > 1
    report = (job.dir / "report.json").read_text()
    assert '"verdict": "healthy"' in report
    assert len(list(job.dir.glob("attempt-*"))) == 1


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(job, method):
    """The launcher itself, its resource tracker and its fork server make no call and are no ranks."""
    (job.folder / "ranks.py").write_text(RANK + """
if __name__ == "__main__":
    import multiprocessing
    context = multiprocessing.get_context(%r)
    ranks = [context.Process(target=rank, args=(number, 3)) for number in range(3)]
    for one in ranks: one.start()
    print(*[one.pid for one in ranks], flush=True)
    for one in ranks: one.join()
    assert [one.exitcode for one in ranks] == [0] * 3
""" % method)
    out, err = job.run([sys.executable, "ranks.py"], RANK=None, LOCAL_RANK=None, WORLD_SIZE=None)
    assert said(err) == [] and err.count("watching") == 1
    check_ranks(job, map(int, out.split()), 3)


def test_forked_by_a_launcher_that_has_torch_s_environment(job):
    """As mp.spawn(start_method="fork") under a launcher: parent and children have RANK, only children communicate."""
    (job.folder / "ranks.py").write_text(RANK + """
from gpu import Gpu
children = []
for number in range(2):
    child = os.fork()
    if child == 0:
        rank(number, 2)
        sys.exit(0)
    children.append(child)
print(*children, flush=True)
assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
""")
    out, err = job.run([sys.executable, "ranks.py"], world=2)
    assert said(err) == []
    check_ranks(job, map(int, out.split()), 2)


def test_torchs_own_processes(job):
    """torch.multiprocessing.spawn with torch.distributed on NCCL in each, by each of its backends."""
    (job.folder / "ranks.py").write_text("""
import os, sys
import torch, torch.distributed as dist, torch.multiprocessing as mp

def rank(number, world):
    os.environ.update(RANK=str(number), LOCAL_RANK=str(number), WORLD_SIZE=str(world))
    torch.cuda.set_device(number)
    dist.init_process_group("nccl", init_method="file://" + os.path.abspath("store"), rank=number, world_size=world)
    value = torch.full((8,), number + 1, device="cuda", dtype=torch.int64)
    for _ in range(3): dist.all_reduce(value)
    for backend in "nccl2", "nccl-lazy":
        dist.all_reduce(value, group=dist.new_group(backend=backend))
    torch.cuda.synchronize()
    print("done", flush=True)
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(rank, args=(2,), nprocs=2)
""")
    out, err = job.run([sys.executable, "ranks.py"], RANK=None, LOCAL_RANK=None, WORLD_SIZE=None, PYTHONPATH=None,
                       MASTER_ADDR=None, MASTER_PORT=None)
    assert sorted(out.split("\n")) == ["", "done", "done"] and said(err) == []
    processes = job.records()
    assert [process.rank for process in processes] == [0, 1]
    for process in processes:
        assert process.ops().count("all_reduce") == 5 and len(process.comms) == 3
        assert "ranks.py:10 rank" in " ".join(process.calls[0].frames)


ALONE = """
    process = Gpu()
    comm, stream = process.communicator(), process.stream()
    process.all_reduce(comm, stream)
    process.sync(stream)
    print(os.getpid(), flush=True)
    time.sleep(0.5)
"""


def test_two_jobs_at_the_same_time(job):
    """On one node, of one user, from one folder: told apart by their rendezvous."""
    directories = [job.folder / "first", job.folder / "second"]
    ranks = [job.start(ALONE, DSHANG_DIR=None, MASTER_PORT=port, cwd=folder) for port, folder in
             zip((29501, 29502), directories) if not folder.mkdir()]
    for rank in ranks:
        _, err = job.end(rank)
        assert said(err) == [] and err.count("watching 1 rank ") == 1
    for folder in directories:
        found, = folder.iterdir()
        wait_for(lambda: (found / "report.json").exists())
        assert len(list(found.glob("attempt-1/flight/*.flight"))) == 1


# The first process of the namespace stays until the monitor is done, one minute at most.
WITH_INIT = ["sh", "-c", '"$@"; for i in $(seq 600); do [ -e $DSHANG_DIR/report.html ] && exit; sleep 0.1; done', "sh"]
NAMESPACES = {
    "pid": ["unshare", "--pid", "--fork", "--mount-proc", *WITH_INIT],
    "net": ["unshare", "--net"],
    "pid and net": ["unshare", "--pid", "--net", "--fork", "--mount-proc", *WITH_INIT],
}


@pytest.mark.parametrize("name", NAMESPACES)
def test_a_rank_in_namespaces_of_its_own(job, name):
    """As in a container of its own."""
    out, err = job.run(ALONE, through=NAMESPACES[name])
    assert said(err) == [] and err.count("watching 1 rank ") == 1
    process, = job.records()
    assert (str(process.pid) + "\n" == out) and (process.pid < 10) == ("pid" in name)
    assert process.ops() == ["all_reduce"] and process.ending == "exit 0"
    assert '"verdict": "healthy"' in (job.dir / "report.json").read_text()


def test_a_rank_that_is_the_first_process_of_its_namespace(job):
    """The kernel ends the monitor together with it: what was recorded DSHANG_PERSIST seconds before is there."""
    out, err = job.run(ALONE, through=["unshare", "--pid", "--fork", "--mount-proc"])
    assert out == "1\n" and said(err) == []
    process, = job.records()
    assert process.ops() == ["all_reduce"] and process.ending in ("exit 0", None)
    ended = subprocess.run([BUILD / "dshang", "report", "--json", job.dir], capture_output=True, text=True)
    assert not [f for f in json.loads(ended.stdout)["findings"] if f["severity"] in ("hang", "error")]


def test_ranks_of_one_job_in_two_network_namespaces_are_two_nodes(job):
    """Each has its own monitor; that of rank 0 writes the report and says of the other that it was not heard."""
    ranks = [job.start(ALONE, rank=0, world=2),
             job.start(ALONE, rank=1, world=2, through=NAMESPACES["net"], LOCAL_RANK=0)]
    assert [said(job.end(rank)[1]) for rank in ranks] == [[], []]
    job.finished()
    assert "1 of 2 ranks were not heard from" in (job.dir / "report.txt").read_text()
    places = {path.name.split(".")[0]: path.relative_to(job.dir).parts[0] for path in job.dir.glob("**/*.flight")
              if "flight" != path.relative_to(job.dir).parts[0]}
    assert places["rank-0"] == "attempt-1" and places["rank-1"].startswith("node-")
