"""DeepSpeed ZeRO-3 on the simulated GPU: a real program, started by DeepSpeed's launcher."""
import pytest
from simulated import PROGRAMS, SCRIPTS, run, said

pytest.importorskip("deepspeed", reason="DeepSpeed is not installed")


def deepspeed(program, *arguments, port, numerics):
    command = [str(SCRIPTS / "deepspeed"), "--master_port", str(port), "--num_gpus", "2", str(PROGRAMS / program)]
    return run([*command, *arguments], ranks=2, numerics=numerics)


def test_zero3_comes_to_the_same_as_one_process_on_the_cpu(free_port):
    process = deepspeed("zero3.py", "--check", port=free_port, numerics="small")
    assert process.returncode == 0, process.stdout
    assert len(said(process, "training right")) == 2
    norms = [line.split("norm")[1] for line in said(process, "step")]
    assert len(norms) == 8 and len(set(norms)) == 4, process.stdout        # equal on both ranks


def test_zero3_steps_without_numerics_of_floats(free_port):
    process = deepspeed("zero3.py", port=free_port, numerics="int")
    assert process.returncode == 0, process.stdout
    assert "OVERFLOW" not in process.stdout
    assert len(said(process, "training right")) == 2
