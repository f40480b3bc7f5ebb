"""PyTorch on the simulated GPU: real programs of one process. Numerics are off, so that only the library is tested."""
import subprocess
import sys

import pytest
from simulated import BUILD, HERE, python

SIMCUDA = HERE.parent.parent / "scripts" / "check_simcuda"


def output(code, **options):
    process = python(code, numerics="off", **options)
    assert process.returncode == 0, process.stdout
    return process.stdout


def test_devices_are_there():
    code = """
import torch
p = torch.cuda.get_device_properties(1)
print(torch.cuda.is_available(), torch.cuda.device_count(), p.name, p.major, p.multi_processor_count, p.pci_bus_id)
print(p.total_memory >> 20, torch.cuda.get_device_capability(), torch.cuda.is_bf16_supported())
"""
    assert output(code, ranks=3).splitlines() == [
        "True 3 NVIDIA H100 80GB HBM3 (simulated) 9 132 2", "81920 (9, 0) True"]


def test_visible_devices_and_their_size_are_settings():
    code = """
import torch
print(torch.cuda.device_count(), [torch.cuda.get_device_properties(i).pci_bus_id for i in range(2)])
print(torch.cuda.mem_get_info()[1])
"""
    lines = output(code, ranks=4, CUDA_VISIBLE_DEVICES="3,1", SIMGPU_VRAM_BYTES="3G").splitlines()
    assert lines == ["2 [4, 2]", str(3 << 30)]


def test_without_devices_cuda_is_not_available():
    assert output("import torch; print(torch.cuda.is_available(), torch.cuda.device_count())",
                  CUDA_VISIBLE_DEVICES="").split() == ["False", "0"]


def test_nothing_is_said_by_a_program_that_uses_what_there_is():
    code = "import torch; x = torch.ones(1000, 1000, device='cuda'); (x @ x).relu().sum(); torch.cuda.synchronize()"
    assert output(code) == ""


def test_copies_carry_data():
    code = """
import torch
x = torch.arange(1 << 20)
y = x.cuda()
print(torch.equal(y.cpu(), x), torch.equal(y.to('cuda:1').cpu(), x), torch.equal(y.clone().cpu(), x))
pinned = torch.empty(1 << 20, dtype=torch.int64, pin_memory=True)
pinned.copy_(y, non_blocking=True)
torch.cuda.synchronize()
print(torch.equal(pinned, x), pinned.is_pinned(), x.is_pinned())
strided = torch.zeros(64, 64, dtype=torch.int64).cuda()
strided[:, 3].cpu()
"""
    assert output(code, ranks=2).split() == ["True", "True", "True", "True", "True", "False"]


def test_streams_and_events():
    code = """
import torch
s = torch.cuda.Stream()
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
with torch.cuda.stream(s):
    start.record(); x = torch.ones(10, device='cuda'); end.record()
torch.cuda.current_stream().wait_stream(s)
s.synchronize()
print(end.query(), start.elapsed_time(end) >= 0, s.query(), torch.cuda.Stream(priority=-1).priority)
"""
    assert output(code).split() == ["True", "True", "True", "-1"]


def test_out_of_memory_is_torchs_own_error():
    code = """
import torch
kept = [torch.empty(10 << 30, dtype=torch.uint8, device='cuda') for _ in range(7)]
try:
    torch.empty(20 << 30, dtype=torch.uint8, device='cuda')
except torch.OutOfMemoryError as error:
    print(error)
stats = torch.cuda.memory_stats()
print(stats['num_ooms'], stats['num_alloc_retries'], stats['allocated_bytes.all.peak'] >> 30)
del kept
torch.cuda.empty_cache()
free, total = torch.cuda.mem_get_info()
print(free == total, len(torch.empty(20 << 30, dtype=torch.uint8, device='cuda')) >> 30)
"""
    said = output(code)
    assert "Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 80.00 GiB of which 10.00 GiB is free" in said
    assert said.splitlines()[-2:] == ["1 1 70", "True 20"]


def test_a_device_smaller_than_its_program_runs_out_at_the_same_place():
    code = """
import torch
count = 0
try:
    kept = []
    while True:
        kept.append(torch.empty(64 << 20, dtype=torch.uint8, device='cuda')); count += 1
except torch.OutOfMemoryError:
    print(count)
"""
    assert output(code, SIMGPU_VRAM_GB="1").splitlines()[-1] == "16"


@pytest.mark.parametrize("setting", ["expandable_segments:True", "backend:cudaMallocAsync"])
def test_the_other_allocators(setting):
    code = """
import torch
blocks = [torch.empty((i + 1) << 22, dtype=torch.uint8, device='cuda') for i in range(20)]
data = torch.arange(100000).cuda()
print(torch.cuda.memory_allocated() >> 20, torch.equal(data.cpu(), torch.arange(100000)))
del blocks
torch.cuda.synchronize()
torch.cuda.empty_cache()
free, total = torch.cuda.mem_get_info()
print((total - free) >> 20 < 64)
try:
    torch.empty(100 << 30, dtype=torch.uint8, device='cuda')
except torch.OutOfMemoryError:
    print('out of memory')
"""
    allocated, *rest = output(code, PYTORCH_CUDA_ALLOC_CONF=setting, PYTORCH_ALLOC_CONF=setting).splitlines()
    assert allocated.startswith("840 True")
    assert [line for line in rest if not line.startswith("[W")] == ["True", "out of memory"]


def test_memory_history_and_snapshot():
    code = """
import torch
torch.cuda.memory._record_memory_history(max_entries=100)
x = torch.ones(1000, device='cuda')
snapshot = torch.cuda.memory._snapshot()
print(len(snapshot['segments']), [e['action'] for e in snapshot['device_traces'][0]])
"""
    assert output(code).strip() == "1 ['segment_alloc', 'alloc']"


def test_graphs_are_captured_and_replayed():
    code = """
import torch
source = torch.zeros(1000, dtype=torch.int64).cuda()
target = torch.zeros(1000, dtype=torch.int64).cuda()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    target.copy_(source)
source.copy_(torch.arange(1000))
print(int(target.cpu().sum()))
graph.replay()
torch.cuda.synchronize()
print(int(target.cpu().sum()))
net = torch.nn.Linear(8, 8).cuda()
graphed = torch.cuda.make_graphed_callables(net, (torch.zeros(4, 8, device='cuda'),))
print(graphed(torch.zeros(4, 8, device='cuda')).shape[1])
"""
    assert [line for line in output(code).splitlines() if line.isdigit()] == ["0", "499500", "8"]


def test_another_threads_event_query_spoils_a_capture():
    code = """
import threading, torch
event = torch.cuda.Event(); event.record()
graph = torch.cuda.CUDAGraph()
x = torch.zeros(10, device='cuda')
def query():
    try:
        event.query()
    except Exception as error:
        print(str(error).splitlines()[0])
try:
    with torch.cuda.graph(graph):
        x.add_(1)
        thread = threading.Thread(target=query); thread.start(); thread.join()
        x.add_(1)
except Exception as error:
    print(str(error).splitlines()[0])
print(torch.zeros(10, device='cuda').cpu().shape[0])
"""
    assert [line for line in output(code).splitlines() if "error" in line or line.isdigit()] == [
        "CUDA error: operation not permitted when stream is capturing",
        "CUDA error: operation failed due to a previous error during capture", "10"]


def test_a_faulted_device_fails_every_later_call():
    code = """
import torch
x = torch.zeros(10, device='cuda')
for attempt in range(2):
    try:
        for _ in range(100):
            x.add_(1)
        torch.cuda.synchronize()
        print('no error')
    except RuntimeError as error:
        print(str(error).splitlines()[0])
"""
    process = python(code, numerics="off", SIMGPU_FAULT_LAUNCH="20")
    lines = [line for line in process.stdout.splitlines() if "CUDA error" in line or "no error" in line]
    assert lines == ["CUDA error: an illegal memory access was encountered"] * 2


def test_what_is_not_supported_is_named_and_raised():
    code = """
import torch
try:
    torch.fft.fft(torch.zeros(64, device='cuda'))
except RuntimeError as error:
    print(error)
try:
    torch.zeros(4, device='cuda').untyped_storage()._share_cuda_()
except RuntimeError as error:
    print(str(error).splitlines()[0])
"""
    lines = output(code).splitlines()
    assert "simgpu: cufftCreate is not supported" in lines and "cuFFT error: CUFFT_NOT_SUPPORTED" in lines
    assert "simgpu: cudaIpcGetMemHandle is not supported" in lines and "CUDA error: operation not supported" in lines


def test_nvml_sees_all_devices_and_their_use():
    code = """
import ctypes, torch
nvml = ctypes.CDLL('libnvidia-ml.so.1')
count, handle, memory, name = ctypes.c_uint(), ctypes.c_void_p(), (ctypes.c_ulonglong * 3)(), ctypes.create_string_buffer(96)
print(nvml.nvmlInit_v2(), nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)), count.value)
x = torch.empty(1 << 30, dtype=torch.uint8, device='cuda:0')
nvml.nvmlDeviceGetHandleByPciBusId_v2(b'00000000:03:00.0', ctypes.byref(handle))
nvml.nvmlDeviceGetMemoryInfo(handle, memory)
nvml.nvmlDeviceGetName(handle, name, 96)
print([n >> 30 for n in memory], name.value.decode())
"""
    assert output(code, ranks=4, CUDA_VISIBLE_DEVICES="2").splitlines() == [
        "0 0 4", "[80, 79, 1] NVIDIA H100 80GB HBM3 (simulated)"]


@pytest.mark.parametrize("numerics", ["int", "off"])
def test_printing_takes_no_count_from_the_device(numerics):
    # torch prints with the shim off: without care a kernel that did nothing would say how many elements there are.
    code = """
import torch
for _ in range(10):
    junk = [torch.randint(-2**62, 2**62, (50,)).cuda() for _ in range(5)]
    del junk
    text = str(torch.arange(3).cuda()) + str(torch.randn(2, 2, device='cuda')) + str(torch.rand(2000, device='cuda'))
    assert text.startswith("tensor([0, 1, 2], device='cuda:0')") and len(text) < 1000, text
print('printed')
"""
    process = python(code, numerics=numerics)
    assert process.returncode == 0 and process.stdout.split() == ["printed"], process.stdout


def test_data_loader_workers_live_beside_it():
    code = """
import torch
from torch.utils.data import DataLoader, TensorDataset
torch.zeros(1, device='cuda')
loader = DataLoader(TensorDataset(torch.arange(40)), batch_size=4, num_workers=2, pin_memory=True)
print(sum(int(batch[0].cuda().cpu().sum()) for batch in loader))
"""
    assert output(code).split()[-1] == "780"


def test_every_function_that_torch_imports_is_there():
    process = subprocess.run([sys.executable, str(SIMCUDA), "--build", str(BUILD)], text=True, capture_output=True)
    assert process.returncode == 0, process.stdout
    assert " 0 missing" in process.stderr
