"""torch.distributed on the simulated GPU: real programs, started by torchrun."""
import os
import re
import time

import pytest
from simulated import said, torchrun


@pytest.mark.parametrize("numerics", ["int", "small"])
def test_collectives_have_right_values(numerics):
    process = torchrun("collectives.py", ranks=2, numerics=numerics)
    assert process.returncode == 0, process.stdout
    assert len(said(process, "values right")) == 2


def test_collectives_on_three_ranks():
    process = torchrun("collectives.py", ranks=3)
    assert process.returncode == 0, process.stdout
    assert len(said(process, "values right")) == 3


@pytest.mark.parametrize("program", ["ddp.py", "fsdp2.py"])
def test_training_comes_to_the_same_as_on_the_cpu(program):
    process = torchrun(program, numerics="small")
    assert process.returncode == 0, process.stdout
    assert len(said(process, "training right")) == 2


def test_a_mismatch_ends_in_torchs_own_watchdog():
    began = time.monotonic()
    process = torchrun("mismatch.py", TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC="1000",
                       TORCH_FR_WAIT_TIMEOUT_DUMP_MILSEC="1000")
    assert process.returncode != 0
    assert len(said(process, "first call complete")) == 2
    caught = re.search(r"Watchdog caught collective operation timeout.*OpType=ALLREDUCE", process.stdout)
    assert caught, process.stdout
    # The watchdog aborts the communicator before it ends the process, and that releases whoever waits, as on a GPU.
    assert "second call complete" not in process.stdout[:caught.start()]
    assert time.monotonic() - began > 5


# What torch makes of an error that NCCL tells behind its back, and of a rank that is gone.
FAULTS = {"1:4:error": r"raised the following async exception: NCCL error:.*remote process exited",
          "1:4:kill": r"exitcode\s*: -9"}


if os.environ.get("E2E_LONG") == "1":
    @pytest.mark.parametrize("fault", FAULTS)
    def test_faults_are_what_torch_takes_them_for(fault):
        process = torchrun("reduces.py", SIMNCCL_FAULT=fault, TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC="1000")
        assert process.returncode != 0
        assert re.search(FAULTS[fault], process.stdout, re.S), process.stdout
        complete = said(process, "complete ")
        assert "3 on 1" in complete and not any(line.startswith("4") for line in complete), complete
