"""Runs the jobs of one row on simulated GPUs, and says what came out."""
import os
import re
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field

import jobs
import matrix_facts
import matrix_issue
import matrix_rows

PATIENCE = float(os.environ.get("MATRIX_PATIENCE", "420"))     # seconds for one job
ABSENT = "no report"
# The last line of a traceback, with or without what a launcher puts before it.
_EXCEPTION = re.compile(r"^(?:\[rank\d+\]: )?((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Warning)?: .+)$", re.M)
_FRAMEWORK = re.compile(r"^(?:deepspeed|accelerate|transformers|lightning|llama|zero|runtime|loops|strategies)/")


@dataclass
class Result:
    name: str
    versions: dict = field(default_factory=dict)
    blocked: str = ""             # why the program does not run, without dshang already
    wrong: list = field(default_factory=list)
    healthy: str = ""
    mistakes: list = field(default_factory=list)
    missing: list = field(default_factory=list)
    facts: dict = field(default_factory=dict)
    notes: list = field(default_factory=list)
    direct: dict = field(default_factory=dict)      # "<stage> <type>": what loss.backward() does there
    date: str = ""

    @property
    def good(self):
        return not self.blocked and not self.wrong and not self.missing


def environment(folder):
    """The settings that put the packages of `folder` before the environment's."""
    if not folder:
        return {}
    paths = [os.path.join(folder, "bin"), os.path.dirname(sys.executable), os.environ["PATH"]]
    return {"PYTHONPATH": folder, "PATH": os.pathsep.join(paths)}


def with_port(command):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return [word.replace("{port}", str(free.getsockname()[1])) for word in command]


class Runner:
    def __init__(self, row, folder, work, say):
        self.row, self.settings, self.work, self.say = row, environment(folder), work, say

    def job(self, name, command, **options):
        folder = os.path.join(self.work, name)
        os.makedirs(folder)
        self.say("  %s" % name)
        return jobs.Job(with_port(command), folder, TMPDIR=folder, **self.settings, **options)

    def ended(self, name, command, **options):
        """(exit status or None, job): the job has ended, or was ended after the patience."""
        with self.job(name, command, **options) as job:
            try:
                return job.process.wait(timeout=PATIENCE), job
            except subprocess.TimeoutExpired:
                return None, job


def reason(log):
    """Why a program failed: its last exception, else its last line."""
    found = [match for match in _EXCEPTION.findall(log) if "ChildFailedError" not in match and "CalledProcessError" not in match]
    lines = [line for line in log.splitlines() if line.strip()]
    return (found[-1] if found else lines[-1] if lines else "no output").strip()[:300]


def lines_of(job, pattern):
    return sorted(job.lines(pattern))


def final_report(job):
    """The report of a job that has ended: its files are finished within 2 s."""
    end = time.monotonic() + 10 + jobs.SLACK
    report = job.report()
    while time.monotonic() < end and not (report and report["verdict"] == "healthy"):
        time.sleep(0.2)
        report = job.report()
    return report


def findings_of(report):
    return [f for f in report["findings"] if f["severity"] != "info"] if report else []


def dump_of(job):
    done = subprocess.run([os.path.join(jobs.BUILD, "dshang"), "report", job.directory, "--dump"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True)
    return done.stdout


def check_healthy(runner, result):
    """The program without dshang, then with it: silent, the same numbers, the facts recorded."""
    row = runner.row
    status, job = runner.ended("without", row.healthy, with_dshang=False)
    if status != 0:
        result.blocked = reason(job.log()) if status is not None else "does not end within %d s" % PATIENCE
        return
    wanted = lines_of(job, row.lines)
    status, job = runner.ended("healthy", row.healthy)
    if status != 0:
        result.wrong.append("with dshang it fails: " + reason(job.log()))
        return
    report, seen = final_report(job), lines_of(job, row.lines)
    said = findings_of(report)
    judge_healthy(result, report, said, seen, wanted)
    result.missing, result.facts = facts_of(job, row.facts)
    if row.arguments:
        check_bug_report(runner, result, job)
    result.notes += sorted({text for _, text in job.lines(r"^\[rank (\d+)\] (load failed: .*)$")})


def check_bug_report(runner, result, job):
    runner.say("  bug report")
    try:
        markdown = matrix_issue.made(job.directory, os.path.join(runner.work, "bug"), runner.settings)
        result.wrong += matrix_issue.complaints(markdown, runner.row.arguments, runner.row.secret)
    except (OSError, RuntimeError, ValueError, subprocess.TimeoutExpired) as error:
        result.wrong.append("no bug report: " + str(error)[:300])


def facts_of(job, wanted):
    """The last copy of the records may come a little after the report."""
    end = time.monotonic() + 10 + jobs.SLACK
    while True:
        missing, known = matrix_facts.judged(matrix_facts.read(dump_of(job)), wanted)
        if not missing or time.monotonic() > end:
            return missing, known
        time.sleep(1)


def judge_healthy(result, report, said, seen, wanted):
    if report is None:
        result.wrong.append("healthy: " + ABSENT)
    elif report["verdict"] != "healthy" or said:
        result.wrong.append("healthy: verdict %s, %s" % (report["verdict"], "; ".join(f["summary"] for f in said)))
    if not wanted:
        result.wrong.append("healthy: it printed no losses")
    elif seen != wanted:
        result.wrong.append("healthy: other losses than without dshang")
    if not result.wrong:
        result.healthy = "silent, %d equal losses" % len(wanted)


def check_mistake(runner, result, mistake, number):
    name = "mistake-%d" % (number + 1)
    with runner.job(name, mistake.command, DSHANG_STALL_AFTER="10") as job:
        try:
            report = job.wait_for("hang", PATIENCE, lambda: hang(job))
            time.sleep(1.5)                               # it may still grow, and must stay right
            report = job.report() or report
        except AssertionError as error:
            result.wrong.append("%s: %s" % (mistake.kind, str(error)[:300]))
            return
    judge_mistake(result, report, mistake)


def hang(job):
    report = job.report()
    return report if report and report["verdict"] == "hang" else None


def judge_mistake(result, report, mistake):
    first = report["findings"][0]
    wrong = []
    if first["class"] != mistake.kind:
        wrong.append("class %s" % first["class"])
    if first["suspects"] != [mistake.rank]:
        wrong.append("suspects %s" % first["suspects"])
    everything = "\n".join([first["summary"], *first["evidence"], str(first["sides"])])
    place = "%s:%d " % (mistake.file, line_number(mistake))
    if place not in everything:
        wrong.append("no %s" % place.strip())
    if mistake.module and not re.search(r"(?:^|[\s.'\"])%s\b" % re.escape(mistake.module), everything):
        wrong.append("no module %s" % mistake.module)
    foreign = [side["user_site"] for side in first["sides"] if _FRAMEWORK.search(side.get("user_site") or "")]
    if foreign:
        wrong.append("taken for the user's: " + foreign[0])
    others = [f["class"] for f in report["findings"][1:] if f["severity"] in ("hang", "error") and f["consequence_of"] is None]
    if others:
        wrong.append("also " + " ".join(others))
    if wrong:
        result.wrong.append("%s: %s; said: %s" % (mistake.kind, ", ".join(wrong), first["summary"]))
    else:
        result.mistakes.append("%s, rank %d, %s" % (mistake.kind, mistake.rank, place.strip()))


def line_number(mistake):
    path = next(word for word in mistake.command if word.endswith(mistake.file))
    with open(path) as file:
        found = [number for number, text in enumerate(file, 1) if mistake.line in text]
    if len(found) != 1:
        raise ValueError("%s holds %r %d times" % (path, mistake.line, len(found)))
    return found[0]


DIRECT = ("3:bf16", "2:bf16", "1:bf16", "0:bf16", "0:fp32", "3:fp16")
_LIKE_ENGINE = "as engine.backward"


def check_direct(runner, result):
    """loss.backward() in each stage: the finding must say what really happened."""
    status, job = runner.ended("direct", matrix_rows.torchrun(matrix_rows.program("direct_backward"), *DIRECT))
    happened = {}
    for _, case, text in job.lines(r"^\[rank (\d+)\] stage (\d \w+): (.*)$"):
        happened.setdefault(case, set()).add(text)
    report = job.report()
    result.direct = {case: " / ".join(sorted(texts)) for case, texts in happened.items()}
    if len(result.direct) != len(DIRECT):
        result.notes.append("loss.backward() in all stages: ended with %s, %s" % (status, reason(job.log())))
    judge_direct(result, [f for f in report["findings"] if f["class"] == "mixed-backward"] if report else [])


def refused(text):
    return "tensor.backward() are not supported" in text or "Loss scaling is required" in text


def judge_direct(result, said):
    """`said`: the findings mixed-backward.  One for the first engine that does not train as with its own backward."""
    first = next(((case, text) for case, text in result.direct.items() if text != _LIKE_ENGINE), None)
    if first is None:
        if said:
            result.wrong.append("loss.backward(): a finding where nothing is wrong: " + said[0]["summary"])
        return
    if not said:
        result.wrong.append("loss.backward(): nothing was said of stage %s: %s" % first)
        return
    summary, evidence = said[0]["summary"], "\n".join(said[0]["evidence"])
    if ("refuses" in summary) != refused(first[1]):
        result.wrong.append("loss.backward(): %s: %s; said: %s" % (*first, summary))
    if "ZeRO stage " + first[0].split()[0] not in evidence:
        result.wrong.append("loss.backward(): stage %s went wrong; said: %s" % (first[0], evidence))
