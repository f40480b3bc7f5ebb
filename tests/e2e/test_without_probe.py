"""Without the Python probe: what the calls, their call sites and DeepSpeed's NVTX ranges say instead."""
import os
import re
import subprocess

from jobs import BUILD, RANKS, SLACK, Job, deepspeed, line_of

STEPS = 14


def test_phases_come_from_nvtx_and_a_broken_trace_is_read_from_the_calls(tmp_path):
    program = deepspeed("changing_order", "--mistake", "--steps", str(STEPS))
    with Job(program, tmp_path, DSHANG_PROBE="0", DSHANG_NVTX="1") as job:
        assert job.end() == 0, job.log()[-3000:]
        report = job.wait_for("report", 5 + SLACK, lambda: job.report() and job.report()["findings"] and job.report())
        assert [finding["class"] for finding in report["findings"]] == ["trace-cache-invalid"], report
        finding = report["findings"][0]
        assert (finding["severity"], finding["suspects"], finding["step"]) == ("warning", [], None), finding
        assert "keeps breaking on all ranks" in finding["summary"], finding
        line = line_of("changing_order", "x = self.for_long(x)")
        assert f"called at changing_order.py:{line} AdaptedModel.adapt" in finding["summary"], finding
        assert any("without the probe" in text for text in finding["evidence"]), finding

        dump = subprocess.run([os.path.join(BUILD, "dshang"), "report", "--dump", job.directory], check=True,
                              capture_output=True, text=True).stdout
        pushed = re.findall(r"^visit phase_push (\S+)", dump, re.M)
        assert {phase: pushed.count(phase) for phase in set(pushed)} == \
            {phase: RANKS * STEPS for phase in ("forward", "backward", "optimizer")}
        assert "visit module_enter" not in dump and "visit step" not in dump
