"""The report of a job: its form, and that `dshang report DIR` repeats it byte for byte from what was left."""
import json
import os
import re
import signal
import subprocess
import sys
import time

import jsonschema
import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
BUILD = os.path.abspath(os.environ.get("TEST_BUILD", os.path.join(ROOT, "build")))
SCENARIOS = os.path.join(ROOT, "tests", "scenarios")


class Job:
    """The ranks of a scenario, started as section 2 of the contract says."""

    def __init__(self, folder, scenario, ranks, port, variant="", stall_after=10, **settings):
        self.directory = str(folder / "dshang")
        env = {key: value for key, value in os.environ.items() if not key.startswith(("DSHANG_", "SCENARIO_", "LD_PRELOAD"))}
        env.update(LD_PRELOAD=f"{BUILD}/libdshang.so {BUILD}/libsimcuda.so", PYTHONPATH=SCENARIOS, SCENARIO_DIR=str(folder),
                   SCENARIO_VARIANT=variant, SCENARIO_MARKERS="1", WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1",
                   MASTER_PORT=str(port), DSHANG_DIR=self.directory, DSHANG_STALL_AFTER=str(stall_after),
                   DSHANG_SITE_SKIP="rankscript.py", **settings)
        self.log = folder / "log"
        with open(self.log, "wb") as log:
            self.ranks = [subprocess.Popen([sys.executable, os.path.join(SCENARIOS, scenario)], stdin=subprocess.DEVNULL,
                                           env=dict(env, RANK=str(r), LOCAL_RANK=str(r)), stdout=log, stderr=log,
                                           start_new_session=True) for r in range(ranks)]

    def report(self):
        try:
            with open(os.path.join(self.directory, "report.json")) as file:
                return json.load(file)
        except FileNotFoundError:
            return None

    def wait_for_report(self, seconds=40):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            report = self.report()
            if report and report["findings"]:
                return report
            time.sleep(0.1)
        raise AssertionError("no finding; " + self.log.read_text(errors="replace")[-2000:])

    def end(self):
        for rank in self.ranks:
            if rank.poll() is None:
                os.killpg(rank.pid, signal.SIGKILL)
            rank.wait()
        time.sleep(2.5)                                       # the monitor finishes its files within 2 s

    def text(self):
        with open(os.path.join(self.directory, "report.txt")) as file:
            return file.read()


def dshang(*arguments):
    return subprocess.run([os.path.join(BUILD, "dshang"), *arguments], capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def schema():
    with open(os.path.join(ROOT, "docs", "report.schema.json")) as file:
        return json.load(file)


@pytest.fixture(scope="module", params=[
    ("a02_idle_expert_equal_sizes.py", 4, ""), ("a14_rank_gone.py", 4, "exit"), ("a15_rank_0_in_preprocessing.py", 4, "lock"),
    ("n08_destroy_within_three_seconds.py", 4, ""),
], ids=["skipped", "dead", "stuck", "healthy"])
def job(request, tmp_path_factory):
    scenario, ranks, variant = request.param
    folder = tmp_path_factory.mktemp("job")
    job = Job(folder, scenario, ranks, 21000 + os.getpid() % 20000, variant)
    if scenario.startswith("n"):
        for rank in job.ranks:
            assert rank.wait(60) == 0
    else:
        job.wait_for_report()
        time.sleep(1)
    job.end()
    return job


def test_the_report_has_the_form_that_is_promised(job, schema):
    jsonschema.validate(job.report(), schema)


def test_it_is_repeated_from_the_files(job):
    repeated = dshang("report", job.directory)
    assert (repeated.returncode, repeated.stdout) == (0, job.text()), repeated.stderr
    with open(os.path.join(job.directory, "report.json")) as file:
        assert dshang("report", job.directory, "--json").stdout == file.read()


def test_settings_of_now_do_not_count_and_that_is_said(job):
    env = {name: value for name, value in os.environ.items() if not name.startswith("DSHANG_")}
    env.update(DSHANG_STALL_AFTER="abc", DSHANG_DRI="x")
    told = subprocess.run([os.path.join(BUILD, "dshang"), "report", job.directory], env=env, capture_output=True, text=True)
    assert (told.returncode, told.stdout) == (0, job.text())
    assert told.stderr.splitlines() == [
        "dshang: DSHANG_DRI is no variable that dshang knows; the nearest is DSHANG_DIR",
        "dshang: DSHANG_STALL_AFTER has no effect here: a report uses the one that the job had"]


def test_the_block_in_the_log_is_short_and_begins_with_the_story(job):
    block = [line for line in job.log.read_text(errors="replace").splitlines() if line.startswith("dshang: ")]
    findings = job.report()["findings"]
    stories = [i for i, line in enumerate(block) if re.match(r"dshang: (HANG|ERROR|WARNING|INFO) \[", line)]
    if not findings:
        assert not stories, block
        return
    first = block[stories[0]]
    assert findings[0]["class"] in first or any(f["class"] in first for f in findings), first
    assert all(len(line) <= 410 for line in block)
    ends = [i for i, line in enumerate(block) if "report.txt" in line]
    assert ends and all(end - begin < 25 for begin, end in zip(stories, ends)), block


def report_in(page):
    with open(page) as file:
        return json.loads(re.search(r'<script type="application/json" id="report">(.*?)</script>', file.read(), re.DOTALL)[1])


def test_the_page_is_written_and_written_again(job):
    page = os.path.join(job.directory, "report.html")
    assert os.readlink(page) == "attempt-1/report.html" and report_in(page) == job.report()
    os.remove(os.path.join(job.directory, "attempt-1", "report.html"))
    again = dshang("report", job.directory, "--html")
    assert (again.returncode, again.stdout) == (0, page + "\n"), again.stderr
    assert os.path.islink(page) and report_in(page) == job.report()
    assert dshang("report", os.path.join(job.directory, "attempt-1"), "--html").stdout == os.path.join(
        job.directory, "attempt-1", "report.html") + "\n"


def test_a_trace_is_written(job, tmp_path):
    written = dshang("report", job.directory, "--perfetto", str(tmp_path / "trace"))
    assert (written.returncode, written.stdout, written.stderr) == (0, "", "")
    trace = perfetto_trace_pb2.Trace.FromString((tmp_path / "trace").read_bytes())
    names = [packet.track_descriptor.process.process_name for packet in trace.packet if packet.track_descriptor.HasField("process")]
    assert [name.split(" (")[0] for name in names] == [f"rank {rank}" for rank in range(len(job.ranks))]
    nowhere = dshang("report", job.directory, "--perfetto", str(tmp_path / "missing" / "trace"))
    assert nowhere.returncode == 2 and nowhere.stderr.count("\n") == 1


def test_a_dump_is_readable_and_goes_back_into_a_report(job):
    dump = dshang("report", job.directory, "--dump")
    assert dump.returncode == 0, dump.stderr
    ranks = re.findall(r"^rank (\d+)", dump.stdout, re.M)
    assert sorted(map(int, ranks)) == list(range(len(job.ranks)))
    assert re.search(r"^call all_", dump.stdout, re.M)


def test_bad_input_gets_one_clear_line(tmp_path):
    missing = dshang("report", str(tmp_path / "nothing"))
    assert missing.returncode == 2 and "nothing" in missing.stderr and missing.stderr.count("\n") == 1
    empty = dshang("report", str(tmp_path))
    assert empty.returncode == 2 and empty.stderr.count("\n") == 1
    (tmp_path / "flight").mkdir()
    (tmp_path / "flight" / "rank-0.1.flight").write_bytes(b"\0" * 5000)
    bad = dshang("report", str(tmp_path))
    assert bad.returncode in (0, 2) and "rank-0.1" in bad.stdout + bad.stderr
