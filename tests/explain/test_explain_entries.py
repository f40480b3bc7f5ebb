"""Each entry speaks on a log that shows it and keeps silent on a near miss; the two are side by side."""
import json

import pytest

from explain_cli import HERE, explain, ids

DEEPSPEED = '  File "/x/deepspeed/runtime/engine.py", line 3, in step\n'
COMPILING = ('  File "/x/torch/utils/cpp_extension.py", line 3, in _run_ninja_build\n'
             "RuntimeError: Error building extension 'fused_adam': [1/3] /nowhere/bin/nvcc -c x.cu\nFAILED: [code=1] x.cuda.o\n")
LOADING = ('  File "/x/torch/nn/modules/module.py", line 3, in load_state_dict\n'
           "RuntimeError: Error(s) in loading state_dict for Model:\n")
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
INIT = "w{0}:9:9 [0] NCCL INFO comm 0x1 rank {0} nRanks 2 nNodes {1} localRanks 1 localRank 0\n"


def losses(*values, key="loss"):
    return "".join(f"{{'{key}': {value}, 'epoch': 0.1}}\n" for value in values)


def norms(*values):
    return losses(*values, key="grad_norm")


def overflows(*scales):
    return "".join(f"[INFO] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {scale}, reducing to {scale / 2}\n" for scale in scales)


def timeout(rank, seq=54, op="ALLREDUCE", numel=1, group=None):
    text = (f"[rank{rank}]:[E1102 10:00:00.1 ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught collective operation timeout: "
            f"WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={numel}, Timeout(ms)=600000) ran for 600011 milliseconds before timing out.\n")
    if group is not None:
        text += (f"[rank{rank}]:[E1102 10:00:00.2 ProcessGroupNCCL.cpp:1785] [PG ID 1 PG GUID {group} Rank {rank}] Exception (either an error or timeout) "
                 f"detected by watchdog at work: {seq}, last enqueued NCCL work: {seq + 2}, last completed NCCL work: {seq - 1}.\n")
    return text


def bars(*elapsed, name="muon"):
    return f"optimizer_name ............... {name}\n" + "\r".join(
        f"  1%|          | {step}/300 [{seconds // 60:02}:{seconds % 60:02}<10:00,  1.00s/it]" for step, seconds in enumerate(elapsed, 1)) + "\n"


# entry, log that shows it, near miss
CASES = [
    ("12.1-5", "1 validation error for DeepSpeedFP16Config\nloss_scale\n", "1 validation error for tomorrow\n"),
    ("X-22", "k\n  extra fields not permitted (type=value_error.extra)\n", "extra fields are permitted\n"),
    ("X-23", "  Input should be a valid integer, got a number with a fractional part [type=int_from_float, input_value=1.5]\n",
     "  Input should be a valid integer, unable to parse [type=int_parsing, input_value='a']\n"),
    ("X-24", "Partial offloading only supported for ZeRO Stage 3.\n", "Offloading is supported\n"),
    ("X-26", "ValueError: 'elasticity' has been removed, see issues/8489\n", "ValueError: the file has been removed\n"),
    ("X-38", "ValueError: Duplicate keys in DeepSpeed config: ['a']\n", "ValueError: Duplicate keys in my config: ['a']\n"),
    ("X-38", DEEPSPEED + "json.decoder.JSONDecodeError: Expecting value\n", '  File "data.py", line 3, in f\njson.decoder.JSONDecodeError: Expecting value\n'),
    ("12.1-4", "TypeError: unsupported operand type(s) for |: 'str' and 'bool'\n", "TypeError: unsupported operand type(s) for |: 'str' and 'int'\n"),
    ("12.3-1", "AssertionError: Micro batch size per gpu: 0 has to be greater than 0\n", "AssertionError: dim: 0 has to be greater than 0\n"),
    ("12.3-5", "binascii.Error: Incorrect padding\n", "ValueError: Incorrect padding\n"),
    ("X-04", "- ds fp16.enabled=True vs hf fp16|fp16_full_eval=False\n", "- ds is better than hf\n"),
    ("X-05", DEEPSPEED + "TypeError: '>' not supported between instances of 'str' and 'float'\n",
     '  File "train.py", line 3, in f\nTypeError: \'>\' not supported between instances of \'str\' and \'float\'\n'),
    ("X-48", "The model's config file has neither `hidden_size` nor `hidden_sizes` entry, therefore\n", "The config has `hidden_size`\n"),
    ("X-34", "TypeError: WarmupDecayLR.__init__() missing 1 required positional argument: 'total_num_steps'\n",
     "TypeError: Mine.__init__() missing 1 required positional argument: 'total_num_steps'\n"),
    ("X-37", "ValueError: 'max_grad_norm' is not supported as an optimizer parameter, please\n", "max_grad_norm=1.0\n"),
    ("12.3-2", "AssertionError: bfloat16 and fp16 cannot be enabled at once\n", "bf16 enabled, fp16 not\n"),
    ("X-20", "ValueError: You cannot create a `DummyOptim` without specifying an optimizer in the config file.\n", "You cannot specify an optimizer twice\n"),
    ("X-27", "You are using ZeRO-Offload with a client provided optimizer (x)\n", "ZeRO-Offload with DeepSpeedCPUAdam\n"),
    ("X-29", "AssertionError: You are using an untested ZeRO Optimizer. Please add\n",
     "[WARNING] **** You are using ZeRO with an untested optimizer, proceed with caution *****\n"),
    ("X-30", "AssertionError: 'adamq' is not a supported DeepSpeed Optimizer\n", "adamw is a supported optimizer\n"),
    ("X-35", "The Muon optimizer needs every parameter tagged with use_muon\n", "Muon and reduce scatter\n"),
    ("X-36", "ValueError: Select interval must be greater or equal to update interval\n", "select interval: 4\n"),
    ("12.12-1", "ZenFlow features are not available with PyTorch < 2.0\n", "ZenFlow features are available\n"),
    ("12.12-2", "AttributeError: 'X' object has no attribute 'zenflow_need_update'\n", "AttributeError: 'X' object has no attribute 'flow'\n"),
    ("12.12-3", "TypeError: __init__() got an unexpected keyword argument 'torch_adam'\n", "TypeError: got an unexpected keyword argument 'adam'\n"),
    ("X-41", "RuntimeError: expected scalar type Half but found Float\n", "RuntimeError: expected scalar type Long but found Float\n"),
    ("12.2-1", "nvcc fatal   : Unsupported gpu architecture 'sm_120'\n", "nvcc fatal   : Unknown option\n"),
    ("12.2-2", "fused_adam ............. [NO] ....... [NO]\n", "fused_adam ............. [NO] ....... [OKAY]\n"),
    ("12.2-3", "Unable to JIT load the cpu_adam op due to ninja not being installed.\n", "Unable to JIT load the fused_adam op due to x\n"),
    ("12.2-4", "[WARNING]  async_io requires the dev libaio .so object and headers but these were not found.\n",
     "[WARNING]  async_io requires the dev libaio .so object and headers but these were not found.\nDeepSpeedEngine configuration:\nstep 1 loss: 2\n"),
    ("12.9-6", "RuntimeError: CUDA version mismatch! DeepSpeed ops were compiled and installed with a different\n", "CUDA version mismatch!\n"),
    ("X-03", "AttributeError: 'DeepSpeedCPUAdam' object has no attribute 'ds_opt_adam'\n", "AttributeError: 'DeepSpeedCPUAdam' object has no attribute 'x'\n"),
    ("X-11", "Using /x as PyTorch extensions root...\n\n", "Using /x as PyTorch extensions root...\nLoading extension module cpu_adam...\n"),
    ("X-12", "The detected CUDA version (11.8) mismatches the version that was used to compile\nPyTorch (12.4).\n",
     "Installed CUDA version 12.1 does not match the version torch was compiled with 12.4 but since the APIs are compatible, accepting\n"),
    ("X-12", COMPILING + "/bin/sh: 1: /nowhere/bin/nvcc: not found\n", "/bin/sh: 1: /nowhere/bin/nvcc: not found\n"),
    ("X-12", COMPILING + "ccache: error: execute_noreturn of /nowhere/bin/nvcc failed: No such file or directory\n",
     "/nowhere/bin/nvcc failed: No such file or directory\n"),
    ("E-17", "RuntimeError: Ninja is required to load C++ extensions (pip install ninja to get it)\n", "ninja: build stopped: subcommand failed.\n"),
    ("X-13", "#error You need C++17 to compile PyTorch\n", "warning: You need coffee to compile PyTorch\n"),
    ("X-14", "ImportError: /lib/libstdc++.so.6: version `GLIBCXX_3.4.32' not found\n", "ImportError: /lib/libc.so.6: version `GLIBC_2.34' not found\n"),
    ("X-32", "with CUDA capability sm_120 is not compatible with the current PyTorch installation.\n", "with CUDA capability sm_90 is compatible\n"),
    ("X-43", "RuntimeError: Found no NVIDIA driver on your system.\n", "Setting ds_accelerator to cpu (override)\n"),
    ("12.3-3", "The server socket has failed to bind to 0.0.0.0:29500 (errno: 98 - Address already in use).\n",
     "The server socket has failed to bind to 0.0.0.0:29500 (errno: 13 - Permission denied).\n"),
    ("12.3-6", "KeyError: 'LOCAL_RANK'\n", "KeyError: 'LOCAL_NAME'\n"),
    ("12.9-1", "worker-1: Permission denied (publickey,password).\n", "PermissionError: Permission denied: 'x'\n"),
    ("E-18", "train.py: error: unrecognized arguments: --local-rank=3\n", "train.py: error: unrecognized arguments: --lokal_rank=3\n"),
    ("E-19", "python3: can't open file '/job/nothere.py': [Errno 2] No such file or directory\n", "cannot open file '/job/data.txt': [Errno 2]\n"),
    ("E-20", "worker-2: bash: line 1: /opt/conda/bin/python3.11: No such file or directory\n", "worker-2: ls: /opt/python/data: No such file or directory\n"),
    ("E-20", "/usr/bin/python: No module named deepspeed\n", "/usr/bin/python: No module named deepspeech\n"),
    ("12.9-5", "ValueError: Hostfile is empty or not formatted correctly, unable to proceed with launching.\n",
     "[WARNING] Unable to find hostfile, will proceed with training with local resources only.\n"),
    ("X-19", "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 2000\n", "GPU detected : rank 1\n"),
    ("X-33", "RuntimeError: CUDA error: invalid device ordinal\n", "invalid device\n"),
    ("X-44", "Detected CUDA_VISIBLE_DEVICES=1 but ignoring it because one or several of --include\n",
     "Detected VISIBLE_DEVICES=1: setting --include=localhost:1\n"),
    ("X-47", "Environment variable NCCL_BLOCKING_WAIT is deprecated; use TORCH_NCCL_BLOCKING_WAIT instead\n",
     "Environment variable A is deprecated; use B instead\n"),
    ("12.3-4", "w:1:2 [0] NCCL WARN Cuda failure 2 'out of memory'\n", "cuda error in my own words\n"),
    ("12.9-3", "w:1:2 [0] NCCL WARN socketStartConnect: Connect to 10.0.0.1<4> failed : No route to host\n",
     "w:1:2 [0] NCCL INFO Connected all rings\n"),
    ("12.9-4", INIT.format(0, 2) + "w1:9:9 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0\n",
     INIT.format(0, 2) + "w1:9:9 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/IB/0/GDRDMA\n"),
    ("12.9-4", INIT.format(0, 2) + "w1:9:9 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.\n", INIT.format(0, 1) +
     "w1:9:9 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.\n"),
    ("X-08", "w:1:2 [0] NCCL WARN Call to posix_fallocate failed : No space left on device\n", "Call to posix_fallocate ok\n"),
    ("X-10", "w:1:2 [0] NCCL INFO Channel 00 : 0[1] -> 1[2] via P2P/IPC\n" + timeout(0, 1) + timeout(1, 1),
     "w:1:2 [0] NCCL INFO Channel 00 : 0[1] -> 1[2] via P2P/IPC\nw:1:2 [0] NCCL INFO Connected all rings\nstep 1 loss: 2.0\n"),
    ("X-45", "w:1:2 [0] ibvwrap.cc:9 NCCL WARN Call to ibv_create_qp failed with error Cannot allocate memory\n",
     "w:1:2 [0] NCCL WARN Call to ibv_create_qp failed with error Invalid argument\n"),
    ("E-06", "w:1:2 [0] NCCL WARN NET/IB : Got completion from peer 1<2> with status=12 opcode=1\n", "w:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0\n"),
    ("E-07", "RuntimeError: [pair.cc:537] Connection closed by peer [127.0.0.1]:4\n", "Connection closed by me\n"),
    ("12.5-1", losses(2.1, 1.9, "nan"), losses(2.1, 1.9) + "saved to loss_nan.bin\nloss: nan_test\n"),
    ("12.5-1", losses("inf", "nan"), losses("inf", 1.9)),
    ("12.5-1", "grad_norm: nan\n" * 3, "grad_norm: nan\n" * 3 + overflows(65536)),
    ("12.5-2", "step 1 loss=tensor(nan, device='cuda:0')\n", "step 1 loss=tensor(2.0, device='cuda:0') aux_loss=nan\n"),
    ("12.5-3", losses(2.0) + "validation loss: nan\n", losses(2.0) + "validation loss: 1.0\n"),
    ("12.5-4", overflows(65536, 32768, 16384, 8192, 4096), overflows(65536, 65536, 65536, 65536, 65536, 65536, 32768, 65536)),
    ("12.5-4", overflows(1024), overflows(65536, 32768, 16384, 8192)),
    ("12.5-5", norms(1.1, 1.0, 1.2, 0.9, 1.1, 240.0), norms(1.1, 1.0, 1.2, 240.0)),
    ("12.5-5", norms("'1.1'", "'1.0'", "'1.2'", "'0.9'", "'1.1'", "'24e1'"), norms(90, 40, 9, 2, 1.1, 1.0, 1.2, 1.3, 9.9)),
    ("X-06", "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.\n", "reducing to 1\n"),
    ("12.6-1", OOM + "\n", "RuntimeError: out of paper. Tried to allocate\n"),
    ("12.6-1", "step 3 loss: 2\n" + OOM + "\n", "step 3 loss: 2\n"),
    ("12.6-2", "99%|# | 412/413 [00:10<00:01,  1.2s/it]\n" + OOM + "\n", "99%|# | 412/413 [00:10<00:01,  1.2s/it]\n"),
    ("12.6-3", '  File "engine.py", line 1, in save_16bit_model\n' + OOM + "\n", '  File "engine.py", line 1, in save_16bit_model\nOK\n'),
    ("12.6-4", "[rank0]: x\n[rank1]: " + OOM + "\n", "[rank0]: x\n[rank1]: y\n"),
    ("12.6-4", "[rank1]: " + OOM + "\n  rank      : 2 (local_rank: 2)\n", "  rank      : 2 (local_rank: 2)\n"),
    ("12.6-5", '{"device": "nvme"}\n' + OOM + "\n", '{"device": "nvme"}\n'),
    ("12.6-5", "offload=<OffloadDeviceEnum.nvme: 'nvme'>\n[ERROR] exits with return code = -9\n", "exits with return code = 1\n"),
    ("X-31", "4 pytorch allocator cache flushes since last step.\n" * 2, "4 pytorch allocator cache flushes since last step.\n"),
    ("X-40", "RuntimeError: DataLoader worker (pid(s) 11, 12) exited unexpectedly\n", "RuntimeError: Caught ValueError in DataLoader worker process 0.\n"),
    ("X-01", "      exitcode  : -9 (pid: 4411)\n", "      exitcode  : -15 (pid: 4411)\n"),
    ("12.7-1", "ValueError: Cannot get 16bit model weights because `stage3_gather_16bit_weights_on_model_save` in DeepSpeed config is False.\n",
     "stage3_gather_16bit_weights_on_model_save is False\n"),
    ("12.7-2", "ModuleNotFoundError: please `pip install safetensors`\n", "pip install safetensors\n"),
    ("12.7-3", "Unable to find latest file at out/latest, if trying to load latest checkpoint please\n", "Unable to find the file\n"),
    ("12.7-4", "AssertionError: Invalid for universal checkpoint: out/zero does not exist\n", "assert len(self.files) > 0\n"),
    ("12.7-5", "RuntimeError: [enforce fail at inline_container.cc] . PytorchStreamWriter failed writing file data/0\n", "space left on device: 4 GB\n"),
    ("12.13-4", DEEPSPEED + "KeyError: 'exp_avg'\n", '  File "mine.py", line 3, in f\nKeyError: \'exp_avg\'\n'),
    ("X-07", "WeightsUnpickler error: Unsupported global: GLOBAL deepspeed.a.B was not an allowed global\n",
     "Weights only load failed.\nWeightsUnpickler error: Unsupported global: GLOBAL mine.B was not an allowed global\n"),
    ("12.7-5", '  File "/x/torch/serialization.py", line 3, in save\nRuntimeError: basic_ios::clear: iostream error\n',
     '  File "mine.py", line 3, in save\nRuntimeError: basic_ios::clear: iostream error\n'),
    ("E-16", LOADING + "\tMissing key(s) in state_dict: \"head.weight\". \n", "Missing key(s) in state_dict: \"head.weight\". \n"),
    ("E-16", LOADING + "\tsize mismatch for head.weight: copying a param with shape torch.Size([8, 32]) from checkpoint, the shape in current model is x.\n",
     LOADING),
    ("X-28", "copying a param with shape torch.Size([0]) from checkpoint, the shape in current model is torch.Size([32000, 4096]).\n",
     "copying a param with shape torch.Size([32000]) from checkpoint, the shape in current model is torch.Size([32002]).\n"),
    ("X-02", "IndexError: index 0 is out of bounds for dimension 0 with size 0\n", "IndexError: index 9 is out of bounds for dimension 0 with size 4\n"),
    ("X-09", "AssertionError: no_sync context manager is incompatible with gradient partitioning logic of ZeRO stage 2\n", "no_sync context manager\n"),
    ("X-16", "recomputed metadata: {'shape': torch.Size([0]), 'dtype': torch.bfloat16}\n", "recomputed metadata: {'shape': torch.Size([7]), 'dtype': x}\n"),
    ("X-17", "AssertionError: The parameter 255 has already been reduced.\n", "The parameter has been reduced\n"),
    ("X-18", "ValueError: DeepSpeed Zero-3 is not compatible with passing a `device_map`.\n", "DeepSpeed Zero-3 is compatible\n"),
    ("X-49", "ValueError: loss must be a scalar tensor. If you need to pass output gradients, use\n", "loss must be small\n"),
    ("E-10", "RuntimeError: disagreement between rank0 and rank2: rank0: [1], rank2: [2]\n", "disagreement between us\n"),
    ("E-11", "Invalidate trace cache @ step 15 and module 313: cache has only 12 modules\n" * 3,
     "Invalidate trace cache @ step 15 and module 313: cache has only 12 modules\n" + "Invalidate trace cache @ step 0 and module 1: cache has only 0 modules\n" * 9),
    ("X-42", "ValueError: optimizer got an empty parameter list\n", "an empty list\n"),
    ("E-12", "RuntimeError: CUDA error: device-side assert triggered\n", "assert triggered\n"),
    ("E-13", "RuntimeError: CUDA error: an illegal memory access was encountered\n", "memory access\n"),
    ("E-14", "[ERROR] ['python'] exits with return code = -11\n", "[ERROR] ['python'] exits with return code = -15\n"),
    ("12.8-1", "ValueError: Attention head count 7 is not divisible by SP size 2\n", "heads are divisible by 2\n"),
    ("12.8-2", "AssertionError: AutoTP not supported for model. Please use kernel injection\n", "AutoTP is supported\n"),
    ("12.8-3", "size mismatch for base.q.lora_A.weight: copying a param with shape torch.Size([0]) from checkpoint, the shape in current model is torch.Size([8, 64]).\n",
     "size mismatch for base.q.lora_A.weight: copying a param with shape torch.Size([8, 32]) from checkpoint, the shape in current model is torch.Size([8, 64]).\n"),
    ("12.13-2", bars(71, 72, 72, 73, 73), bars(20, 40, 60, 80, 100)),
    ("12.13-2", bars(31, 32, 33, 34, name="Muon"), bars(31, 32, 33, 34, name="adamw")),
    ("X-46", timeout(2), "Watchdog started\n"),
    ("E-01", timeout(0, 54) + timeout(1, 54, "ALLGATHER"), ""),
    ("E-02", "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: x\n", "collectives match\n"),
    ("E-03", "[rank0]: ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress\n", "watchdog got coffee\n"),
    ("E-04", "[3] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but\n", "NCCL communicator\n"),
    ("E-05", "torch.distributed.DistStoreError: wait timeout after 300000ms, keys: /worker/1\n", "wait 300000ms\n"),
    ("E-21", "RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 703687 bytes. "
     "Error code 12 (Cannot allocate memory)\n", "RuntimeError: DefaultCPUAllocator: cannot be used here\n"),
    ("E-22", '  File "/x/accelerator/abstract_accelerator.py", line 276, in _torch_pin_memory\ntorch.AcceleratorError: CUDA error: out of memory\n',
     '  File "/x/accelerator/abstract_accelerator.py", line 276, in _torch_pin_memory\nRuntimeError: out of luck\n'),
    ("E-23", '  File "train.py", line 3, in main\ntorch.AcceleratorError: CUDA error: out of memory\n', "CUDA errors: out of memory of them all\n"),
    ("E-24", "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\n",
     "RuntimeError: CUDA error: CUBLAS_STATUS_INVALID_VALUE when calling `cublasCreate(handle)`\n"),
    ("E-25", "ImportError: /r/.cache/torch_extensions/py311_cu130/cpu_adam/cpu_adam.so: cannot open shared object file: No such file or directory\n",
     "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory\n"),
    ("E-25", '  File "/x/torch/utils/cpp_extension.py", line 3, in _import_module_from_library\n'
     "ImportError: /mine/fused_adam/fused_adam.so: cannot open shared object file: No such file or directory\n",
     '  File "mine.py", line 3, in f\nImportError: /mine/fast.so: cannot open shared object file: No such file or directory\n'),
    ("E-26", "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).\n", "The NVIDIA driver on your system is new\n"),
    ("E-27", "RuntimeError: No CUDA GPUs are available\n", "No CUDA GPUs are needed\n"),
    ("E-28", "RuntimeError: [Rank 0]: Rank 3 failed to pass monitoredBarrier in 5000 ms\n", "[Rank 0]: passed monitoredBarrier in 5 ms\n"),
    ("E-29", "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered\n", "ECC errors: 0 uncorrectable\n"),
    ("E-30", "[9.1] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n",
     "[9.1] NVRM: Xid (PCI:0000:3b:00): 45, pid=77, name=python, Ch 00000008\n"),
    ("E-31", "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. This error\n",
     "RuntimeError: Expected to have finished reduction before\n"),
    ("X-38", '  File "/x/deepspeed/runtime/engine.py", line 2560, in _configure_basic_optimizer\n'
     "TypeError: '<=' not supported between instances of 'float' and 'str'\n",
     '  File "/x/torch/optim/adamw.py", line 3, in __init__\nTypeError: \'<=\' not supported between instances of \'float\' and \'str\'\n'),
    ("E-32", '  File "/x/deepspeed/runtime/engine.py", line 2560, in _configure_basic_optimizer\n'
     "TypeError: AdamW.__init__() got an unexpected keyword argument 'learning_rate'\n",
     '  File "/x/deepspeed/runtime/engine.py", line 9, in forward\nTypeError: Net.__init__() got an unexpected keyword argument \'learning_rate\'\n'),
    ("X-41", "RuntimeError: expected mat1 and mat2 to have the same dtype, but got: float != c10::BFloat16\n",
     "RuntimeError: sampled_addmm: Expected mat1 and mat2 to have the same batch size, but got 3\n"),
    ("X-25", DEEPSPEED + "TypeError: expected str, bytes or os.PathLike object, not NoneType\n",
     '  File "data.py", line 3, in f\nTypeError: expected str, bytes or os.PathLike object, not NoneType\n'),
    ("E-15", "slurmstepd: error: *** STEP 17.0 ON n1 CANCELLED AT 2026-11-02T10:00:00 DUE TO TIME LIMIT ***\n", "the time limit is 3 h\n"),
]


@pytest.mark.parametrize("entry, shows, nearly", CASES, ids=lambda value: value if len(value) < 9 else "-")
def test_entry(entry, shows, nearly):
    told = ids(shows)
    if entry == "X-10" and "WorkNCCL" in shows:
        assert told == ["X-10", "X-46"]
    else:
        assert told == [entry]
    assert ids(nearly) == []


def test_every_entry_has_a_case():
    entries = json.loads(explain("--entries", "--json").stdout)["entries"]
    assert {entry["id"] for entry in entries} == {case[0] for case in CASES}


def test_every_pattern_has_a_log_that_matches_it():
    """In the fixtures or here."""
    import re
    entries = json.loads(explain("--entries", "--json").stdout)["entries"]
    text = "".join(case[1] for case in CASES) + "".join(file.read_text() for file in sorted((HERE / "fixtures" / "logs").iterdir()))
    text = re.sub(r"\x1b\[[0-9;]*m", "", text) + (HERE / "fixtures" / "more_lines.txt").read_text()
    lines = text.splitlines()
    for entry in entries:
        for pattern in entry["patterns"]:
            assert any(re.search(pattern, line) for line in lines), (entry["id"], pattern)
