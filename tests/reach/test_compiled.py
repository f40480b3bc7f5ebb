"""Calls inside functions that torch.compile has compiled: sites are the program's lines."""
from reach_job import said

PROGRAM = """
    import torch

    process = Gpu()
    comm, stream, address = process.communicator(), process.stream(), process.malloc(4000)

    def reduce():
        check(process.ncclAllReduce(address, address, sys._getframe(1).f_lineno, 7, 0, comm, stream))

    def inner(x):
        x = x * 2
        reduce()
        return x + 1

    @torch.compile(backend="eager")
    def step(x):
        x = inner(x) - 3
        reduce()
        if x.sum() > 1000: x = x / 2
        reduce()
        return x

    class Net(torch.nn.Module):
        def forward(self, x):
            reduce()
            return step(x)

    net = torch.compile(Net(), backend="eager")
    for size in (4, 4, 5, 6, 4):
        net(torch.ones(size))
    assert torch._dynamo.utils.counters["frames"]["ok"] > 0
    process.sync(stream)
    print("fine")
"""


def test_sites_in_compiled_functions(job):
    out, err = job.run(PROGRAM, DSHANG_PROBE=None, seconds=240)      # importing torch alone takes long on a loaded machine
    assert out == "fine\n" and said(err) == []
    process, = job.records()
    assert len(process.calls) == 20
    seen = set()
    for call in process.calls:
        own = [frame.split(" ", 1) for frame in call.frames if "/program0.py:" in frame]
        assert own[0][1] == "reduce" and own[1][0].endswith("/program0.py:" + call.words[1]), call.frames
        seen.add(own[1][1].rsplit(".", 1)[-1].split("_at_")[0])
    assert {"inner", "forward"} <= seen and any("step" in name for name in seen), seen
