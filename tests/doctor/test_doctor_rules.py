"""Each rule speaks on a trigger and keeps silent on a near miss."""
import json
import struct

import pytest

from doctor_cli import doctor, findings, told

ADAM = {"type": "AdamW", "params": {"lr": 1e-4}}
GATHER = {"stage3_gather_16bit_weights_on_model_save": True}
STEP = {"select_strategy": "step", "select_interval": 4, "update_interval": 2}
GIB = 1 << 30


def plain(**keys):
    return {"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True}, **keys}


def zero(stage, optimizer=ADAM, **keys):
    return plain(zero_optimization={"stage": stage, **(GATHER if stage == 3 else {}), **keys}, **({"optimizer": optimizer} if optimizer else {}))


def offloaded(stage=2, **keys):
    return zero(stage, offload_optimizer={"device": "cpu", **keys})


def flow(optimizer=ADAM, **keys):
    return zero(2, optimizer, offload_optimizer={"device": "cpu"}, zenflow={**STEP, **keys})


def nvme(path=None):
    return zero(3, offload_optimizer={"device": "nvme", **({"nvme_path": path} if path else {})})


LLAMA = {"architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
         "num_hidden_layers": 32, "intermediate_size": 11008, "vocab_size": 32000}
SHARDS = ["latest=step1", "step1/mp_rank_00_model_states.pt", "step1/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
          "step1/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt"]
TWO_NODES = {"nodes": 2, "command": ["deepspeed", "--hostfile", "hosts", "train.py"]}


def launched(*options):
    return {"command": ["deepspeed", *options, "train.py"], "gpus": 8}


def locked(op, age_s=7200, **facts):
    return {"jit_locks": [{"path": f"/c/py311_cu130/{op}/lock", "age_s": age_s}], **facts}


def node(name, slots=None, **facts):
    return {"name": name, "facts": facts, **({"slots": slots} if slots else {})}


def nodes(a, b, slots=None):
    return {"nodes": 2, "other_nodes": [node("a", slots, **a), node("b", slots, **b)]}


# rule, what triggers it, what nearly does
CASES = [
    ("12.3-1", dict(config=plain(train_batch_size=12)), dict(config=plain(train_batch_size=16))),
    ("12.3-1", dict(config={"train_batch_size": 12}), dict(config={"train_batch_size": 12}, facts={"world_size": 4})),
    ("X-05", dict(config=plain(optimizer={"type": "AdamW", "params": {"lr": "auto"}})),
     dict(config=plain(optimizer={"type": "AdamW", "params": {"lr": "auto"}}), facts={"trainer": "hf"})),
    ("X-05", dict(config={"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": "auto"}}), dict(config=zero(2, reduce_bucket_size="auto"))),
    ("X-04", dict(config=plain(gradient_clipping=0.5), facts={"trainer": "hf", "hf": {"max_grad_norm": 1.0}}),
     dict(config=plain(gradient_clipping=1.0), facts={"trainer": "hf", "hf": {"max_grad_norm": 1.0}})),
    ("12.3-2", dict(config=plain(fp16={"enabled": True})), dict(config=plain(fp16={"enabled": False}))),
    ("12.5-1", dict(config={"train_micro_batch_size_per_gpu": 1, "fp16": {"enabled": True}, "gradient_clipping": 0.0}),
     dict(config=plain(gradient_clipping=0.0))),
    ("12.5-4", dict(config={"train_micro_batch_size_per_gpu": 1, "fp16": {"enabled": True, "initial_scale_power": 20}}),
     dict(config={"train_micro_batch_size_per_gpu": 1, "fp16": {"enabled": True, "initial_scale_power": 16}})),
    ("12.1-4", dict(config=plain(wall_clock_breakdown=True)), dict(config=plain(wall_clock_breakdown=False))),
    ("X-49", dict(config=plain(), facts={"script_text": "loss = engine(x)\nloss.backward()\n"}),
     dict(config=zero(2), facts={"script_text": "loss = engine(x)\nloss.backward()\n"})),
    ("X-49", dict(config=plain(), facts={"script_text": "for _ in x:\n  loss.backward()"}), dict(config=plain(), facts={"script_text": "# not loss.backward()\n"})),
    ("X-38", dict(config=plain(gradient_clipping="1.0")), dict(config=plain(gradient_clipping=1.0))),
    ("X-38", dict(config='{"a": [1, 2}'), dict(config='{"_a": [1, 2], "train_micro_batch_size_per_gpu": 1}')),
    ("X-38", dict(config=plain(optimizer="AdamW")), dict(config=plain(optimizer=ADAM))),
    ("X-26", dict(config=zero(3, mics_shard_size=2)), dict(config=zero(3, mics_shard_size=2), facts={"deepspeed": "0.19.5"})),
    ("X-22", dict(config=zero(3, stage3_max_live_parameter=1)), dict(config=zero(3, stage3_max_live_parameters=1))),
    ("X-22", dict(config=plain(tensorboard={"enable": True})), dict(config=plain(flops_profiler={"enable": True}))),
    ("X-23", dict(config=zero(2, reduce_bucket_size=0.9)), dict(config=zero(2, reduce_bucket_size=2e8))),
    ("12.1-5", dict(config=zero(5)), dict(config=zero(1))),
    ("12.1-5", dict(config=offloaded(ratio=1.5)), dict(config=offloaded(ratio=1.0))),
    ("12.1-5", dict(config=zero(2, overlap_comm="maybe")), dict(config=zero(2, overlap_comm="true"))),
    ("X-21", dict(config=plain(zero_optimisation={"stage": 2})), dict(config=plain(_zero_optimisation={"stage": 2}))),
    ("D-02", dict(config=plain(), facts={"deepspeed_refuses": "ValueError: no"}),
     dict(config=plain(fp16={"enabled": True}), facts={"deepspeed_refuses": "AssertionError: bfloat16 and fp16 modes"})),
    ("12.7-1", dict(config=plain(zero_optimization={"stage": 3})), dict(config=plain(zero_optimization={"stage": 2}))),
    ("12.7-1", dict(config=plain(zero_optimization={"stage": 3}), facts={"script_text": "engine.save_16bit_model('out')\n"}),
     dict(config=plain(zero_optimization={"stage": 3}), facts={"script_text": "engine.save_checkpoint('out')\n"})),
    ("X-24", dict(config=zero(0, offload_optimizer={"device": "cpu"})), dict(config=zero(0, offload_optimizer={"device": "none"}))),
    ("X-24", dict(config=offloaded(ratio=0.5)), dict(config=offloaded(3, ratio=0.5))),
    ("X-25", dict(config=nvme()), dict(config=nvme("/mnt/nvme0"))),
    ("X-25", dict(config=nvme("/mnt/a"), facts={"places": {"/mnt/a": {"writable": False}}}),
     dict(config=nvme("/mnt/a"), facts={"places": {"/mnt/a": {"writable": True}}})),
    ("12.6-5", dict(config=nvme("/mnt/a"), facts={"places": {"/mnt/a": {"filesystem": "nfs4"}}}),
     dict(config=nvme("/mnt/a"), facts={"places": {"/mnt/a": {"filesystem": "xfs", "rotational": False}}})),
    ("12.6-5", dict(config=zero(3, offload_param={"device": "nvme", "nvme_path": "/mnt/a"}), facts={"ranks_per_node": 8, "memory_bytes": 8e9}),
     dict(config=zero(3, offload_param={"device": "nvme", "nvme_path": "/mnt/a"}), facts={"ranks_per_node": 8, "memory_bytes": 64e9})),
    ("12.12-1", dict(config=flow(), facts={"torch": "2.0.1"}), dict(config=flow(), facts={"torch": "2.1.0"})),
    ("12.12-1", dict(config=flow(), facts={"deepspeed": "0.17.5"}), dict(config=flow(), facts={"deepspeed": "0.17.6"})),
    ("12.12-2", dict(config=zero(2, zenflow=STEP)), dict(config=flow())),
    ("12.12-3", dict(config=flow(optimizer=None)), dict(config=flow())),
    ("12.12-3", dict(config=flow(), facts={"client_optimizer": "AdamW"}), dict(config=flow(), facts={"client_optimizer": ""})),
    ("12.12-4", dict(config=flow(topk_ratio=0.01)), dict(config=flow(topk_ratio=0.02))),
    ("X-36", dict(config=flow(select_interval="auto")), dict(config=flow(select_interval=2))),
    ("X-36", dict(config=flow(topk_ratio=1)), dict(config=flow(topk_ratio=0.5))),
    ("X-27", dict(config=zero(2, None, offload_optimizer={"device": "cpu"})),
     dict(config=zero(2, None, offload_optimizer={"device": "cpu"}), facts={"client_optimizer": "DeepSpeedCPUAdam"})),
    ("X-30", dict(config=zero(2, {"type": "Adamw2", "params": {}})), dict(config=zero(2, {"type": "ADAMW", "params": {"lr": 1e-4}}))),
    ("X-30", dict(config=zero(2, None), facts={"client_optimizer": ""}), dict(config=zero(2, None), facts={"client_optimizer": "AdamW"})),
    ("X-29", dict(config=zero(2, {"type": "SGD", "params": {"lr": 1}})), dict(config=plain(optimizer={"type": "SGD", "params": {"lr": 1}}))),
    ("X-29", dict(config=zero(2, None), facts={"client_optimizer": "Adafactor"}),
     dict(config={**zero(2, None), "zero_allow_untested_optimizer": True}, facts={"client_optimizer": "Adafactor"})),
    ("X-20", dict(config=zero(2), facts={"client_optimizer": "AdamW"}), dict(config=zero(2), facts={"client_optimizer": "DummyOptim"})),
    ("12.13-3", dict(config=zero(2, None), facts={"client_optimizer": "Muon"}), dict(config=zero(2, {"type": "Muon", "params": {"lr": 0.02}}))),
    ("X-34", dict(config=plain(optimizer=ADAM, scheduler={"type": "warmuplr"})), dict(config=plain(optimizer=ADAM, scheduler={"type": "WarmupLR"}))),
    ("X-34", dict(config=plain(optimizer=ADAM, scheduler={"type": "WarmupCosineLR", "params": {}})),
     dict(config=plain(optimizer=ADAM, scheduler={"type": "WarmupCosineLR", "params": {"total_num_steps": 10}}))),
    ("X-35", dict(config=zero(3, {"type": "muon", "params": {"lr": 1}})), dict(config=zero(1, {"type": "muon", "params": {"lr": 1}}))),
    ("X-37", dict(config=plain(optimizer={"type": "Adam", "params": {"max_grad_norm": 1}})), dict(config=plain(optimizer=ADAM, gradient_clipping=1))),
    ("12.13-1", dict(config=zero(1, {"type": "Muon", "params": {"lr": 1}}), facts={"deepspeed": "0.18.4"}),
     dict(config=zero(1, {"type": "Muon", "params": {"lr": 1}}), facts={"deepspeed": "0.18.5"})),

    ("12.9-5", dict(hostfile="a slots=8\nb:8\n"), dict(hostfile="a slots=8 max=9\n\n  # b:8\nb slots=8\n")),
    ("12.9-5", dict(hostfile="\ufeffa slots=8\n"), dict(hostfile="a slots=8\r\nb slots=8\r\n")),
    ("12.9-1", dict(facts={"other_nodes": [node("a"), {"name": "b", "unreachable": "Permission denied (publickey)."}]}),
     dict(facts={"other_nodes": [node("a"), node("b")]})),
    ("12.9-2", dict(facts={"other_nodes": [node("a", ds_config="1", torch="2.4.0"), node("b", ds_config="2", torch="2.4.0")]}),
     dict(facts={"other_nodes": [node("a", ds_config="1"), node("b", ds_config="1", driver="5")]})),

    ("12.9-2", dict(facts=nodes({"shm_bytes": "68719476736"}, {"shm_bytes": "1073741824"})),
     dict(facts=nodes({"interfaces": "lo eth0"}, {"interfaces": "lo ens3"}))),
    ("12.9-2", dict(facts=nodes({"python": "none"}, {})), dict(facts=nodes({}, {}))),
    ("12.3-5", dict(config=plain(), facts=nodes({"ds_config": "1"}, {"ds_config": "none"})),
     dict(config=plain(), facts=nodes({"ds_config": "1"}, {"ds_config": "1"}))),
    ("12.9-6", dict(facts=nodes({"ops": "cpu_adam"}, {"ops": "none"})), dict(facts=nodes({"ops": "cpu_adam"}, {"ops": "cpu_adam"}))),
    ("12.9-6", dict(facts=nodes({"ops_built_with": "2.4", "torch": "2.5.1"}, {})), dict(facts=nodes({"ops_built_with": "0.0", "torch": "2.5.1"}, {}))),
    ("12.9-3", dict(env={"NCCL_SOCKET_IFNAME": "eth0"}, facts=nodes({"interfaces": "lo eth0"}, {"interfaces": "lo ens3"})),
     dict(env={"NCCL_SOCKET_IFNAME": "eth0,ens"}, facts=nodes({"interfaces": "lo eth0"}, {"interfaces": "lo ens3"}))),
    ("X-08", dict(facts=nodes({"shm_bytes": "67108864"}, {"shm_bytes": "67108864"}, 8)), dict(facts=nodes({"shm_bytes": "67108864"}, {"shm_bytes": "67108864"}, 1))),
    ("X-33", dict(facts=nodes({"gpus": "8"}, {"gpus": "4"}, 8)), dict(facts=nodes({"gpus": "8"}, {"gpus": "4"}, 4))),
    ("X-45", dict(config=offloaded(), facts=nodes({"memlock_bytes": "65536"}, {})), dict(config=offloaded(), facts=nodes({"memlock_bytes": "unlimited"}, {}))),
    ("12.2-3", dict(config=offloaded(), facts=nodes({"gxx": "none"}, {})), dict(config=offloaded(), facts=nodes({"gxx": "none", "ops": "cpu_adam"}, {}))),

    ("12.3-5", dict(facts={"command": ["deepspeed", "train.py", "--deepspeed", "no_such_config.json"]}),
     dict(config=plain(), facts={"command": ["deepspeed", "train.py", "--deepspeed", "ds_config.json"]})),
    ("12.1-3", dict(env={"NCCL_DEBUG": "DEBUG"}), dict(env={"NCCL_DEBUG": "warn"})),
    ("12.3-6", dict(env={"RANK": "0", "WORLD_SIZE": "2"}),
     dict(env={"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "29501"})),
    ("12.3-6", dict(facts={"command": ["python", "train.py"], "script_text": "engine = deepspeed.initialize(model)"}),
     dict(facts={"command": ["torchrun", "train.py"], "script_text": "engine = deepspeed.initialize(model)"})),
    ("12.3-6", dict(env={"RANK": "0", "WORLD_SIZE": "2"}, facts={"command": ["python", "train.py"]}),
     dict(env={"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "29500"}, facts={"command": ["torchrun", "--nproc_per_node", "8", "train.py"]})),
    ("12.3-6", dict(env={"WORLD_SIZE": "2"}, facts={"command": ["bash", "train.sh"]}), dict(env={"WORLD_SIZE": "2"}, facts={"command": ["deepspeed", "--num_gpus", "8", "train.py"]})),
    ("X-15", dict(env={"TORCH_NCCL_TIMEOUT": "1"}), dict(env={"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "1", "NCCL_IB_TIMEOUT": "20"})),
    ("X-15", dict(env={"NCCL_SOCKET_IFNAMES": "eth0"}), dict(env={"NCCL_ROOT": "/opt/nccl", "NCCL_VERSION": "2.30"})),
    ("X-47", dict(env={"NCCL_BLOCKING_WAIT": "1"}), dict(env={"TORCH_NCCL_BLOCKING_WAIT": "1"})),
    ("X-19", dict(env={"CUDA_VISIBLE_DEVICES": "0,,1"}), dict(env={"CUDA_VISIBLE_DEVICES": "GPU-1a,GPU-1b"})),
    ("X-19", dict(env={"CUDA_VISIBLE_DEVICES": "0,1"}, facts={"ranks_per_node": 4}), dict(env={"CUDA_VISIBLE_DEVICES": "0,1"}, facts={"ranks_per_node": 2})),
    ("X-33", dict(facts={"gpus": 4, "ranks_per_node": 8}), dict(facts={"gpus": 4, "ranks_per_node": 4})),
    ("X-33", dict(env={"LOCAL_RANK": "4"}, facts={"gpus": 4}), dict(env={"LOCAL_RANK": "3"}, facts={"gpus": 4})),
    ("X-44", dict(env={"CUDA_VISIBLE_DEVICES": "2,3"}, facts={"command": ["deepspeed", "--num_gpus", "2", "train.py"]}),
     dict(env={"CUDA_VISIBLE_DEVICES": "2,3"}, facts={"command": ["deepspeed", "train.py", "--num_gpus", "2"]})),
    ("X-44", dict(env={"CUDA_VISIBLE_DEVICES": "2,3"}, facts=launched("--num_gpus", "4")), dict(env={"CUDA_VISIBLE_DEVICES": "3,2,1,0"}, facts=launched("--num_gpus", "4"))),
    ("X-44", dict(env={"CUDA_VISIBLE_DEVICES": "2,3"}, facts=launched("--include", "localhost:3")),
     dict(env={"CUDA_VISIBLE_DEVICES": "2,3"}, facts=launched("--include=localhost:2,3"))),
    ("X-44", dict(env={"CUDA_VISIBLE_DEVICES": "0"}, facts=launched(), hostfile="a slots=4\n"), dict(env={"CUDA_VISIBLE_DEVICES": "0"}, facts=launched())),
    ("X-19", dict(env={"CUDA_VISIBLE_DEVICES": "0,0"}, facts=launched()), dict(env={"CUDA_VISIBLE_DEVICES": "2,2"}, facts=launched("--num_gpus", "4"))),
    ("D-03", dict(facts=launched("--include", "c:0"), hostfile="a slots=4\nb slots=4\n"), dict(facts=launched("--include", "b:0@a"), hostfile="a slots=4\nb slots=4\n")),
    ("D-03", dict(facts=launched("--exclude", "b:4"), hostfile="a slots=4\nb slots=4\n"), dict(facts=launched("-e", "b"), hostfile="a slots=4\nb slots=4\n")),
    ("D-03", dict(facts=launched("--exclude", "a@b"), hostfile="a slots=4\nb slots=4\n"), dict(facts=launched("--num_nodes", "3"), hostfile="a slots=4\nb slots=4\n")),
    ("D-03", dict(facts=launched("--include", "a", "--exclude", "b"), hostfile="a slots=4\nb slots=4\n"), dict(facts=launched("--include", "localhost:0,1"))),
    ("D-03", dict(facts=launched("--include", "localhost:8")), dict(facts={"command": ["torchrun", "--include", "c:0", "train.py"]})),
    ("D-03", dict(env={"CUDA_VISIBLE_DEVICES": "0"}, facts=launched("--num_nodes", "1")), dict(facts=launched("--num_nodes", "1"))),
    ("D-03", dict(facts={"command": ["deepspeed", "train.py", "--num_gpus", "2"], "script_text": "import deepspeed"}),
     dict(facts={"command": ["deepspeed", "train.py", "--num_gpus", "2"], "script_text": "parser.add_argument('--num_gpus')"})),
    ("X-46", dict(env={"DEEPSPEED_TIMEOUT": "1.5"}), dict(env={"DEEPSPEED_TIMEOUT": "30"})),
    ("X-46", dict(env={"DEEPSPEED_TIMEOUT": "3600"}), dict(env={"DEEPSPEED_TIMEOUT": "180"})),
    ("D-01", dict(env={"DEEPSPEED_TIMEOUT": "60"}, facts=TWO_NODES), dict(env={"NCCL_DEBUG": "INFO"}, facts=TWO_NODES)),
    ("D-01", dict(env={"LD_PRELOAD": "x.so"}, facts=TWO_NODES), dict(env={"LD_PRELOAD": "x.so"}, facts={**TWO_NODES, "exported_names": ["LD_PRELOAD"]})),
    ("D-01", dict(env={"NCCL_IB_HCA": "mlx5"}, facts={"nodes": 2, "command": ["mpirun", "-np", "16", "-x", "LD_PRELOAD=x.so", "python", "train.py"]}),
     dict(env={"NCCL_IB_HCA": "mlx5"}, facts={"nodes": 2, "command": ["mpirun", "-np", "16", "-x", "NCCL_IB_HCA", "python", "train.py"]})),
    ("D-01", dict(env={"NCCL_IB_HCA": "mlx5"}, facts={"nodes": 2, "command": ["mpirun", "--mca", "btl", "^openib", "python", "train.py"]}),
     dict(env={"NCCL_IB_HCA": "mlx5"}, facts={"nodes": 2, "command": ["mpirun", "-np", "16", "python", "train.py"]})),
    ("D-01", dict(env={"LD_PRELOAD": "x.so"}, facts={"command": ["srun", "--export=HF_HOME,A=1", "python", "train.py"]}),
     dict(env={"LD_PRELOAD": "x.so"}, facts={"command": ["srun", "--export=ALL,A=1", "python", "train.py"]})),
    ("12.3-3", dict(facts={"busy_ports": {"29500": "process 7 (python)"}}), dict(env={"MASTER_PORT": "29501"}, facts={"busy_ports": {"29500": ""}})),
    ("12.3-3", dict(env={"MASTER_PORT": "295000"}), dict(env={"MASTER_PORT": "29511"})),
    ("12.9-3", dict(env={"NCCL_SOCKET_IFNAME": "eth9"}, facts={"interfaces": ["lo", "eth0"]}),
     dict(env={"NCCL_SOCKET_IFNAME": "^lo,docker0"}, facts={"interfaces": ["lo", "docker0", "eth0"]})),
    ("12.9-3", dict(env={"NCCL_SOCKET_IFNAME": "=eth"}, facts={"interfaces": ["lo", "eth0"]}),
     dict(env={"NCCL_SOCKET_IFNAME": "eth"}, facts={"interfaces": ["lo", "eth0"]})),
    ("12.9-3", dict(env={"GLOO_SOCKET_IFNAME": "lo"}, facts={"interfaces": ["lo", "eth0"], "nodes": 2}),
     dict(env={"GLOO_SOCKET_IFNAME": "lo"}, facts={"interfaces": ["lo", "eth0"], "nodes": 1})),
    ("12.9-3", dict(env={"MASTER_ADDR": "localhost"}, facts={"nodes": 2}), dict(env={"MASTER_ADDR": "localhost"})),
    ("12.9-4", dict(env={"NCCL_IB_DISABLE": "1"}, facts={"nodes": 2, "infiniband": True}), dict(env={"NCCL_IB_DISABLE": "1"}, facts={"infiniband": True})),
    ("X-10", dict(facts={"gpus": 2, "acs_redirects": True, "nvlink": False}), dict(facts={"gpus": 2, "acs_redirects": True, "nvlink": True})),
    ("12.1-1", dict(facts={"ds_report_fails": "ImportError: libcudart.so.12: cannot open shared object file"}), dict(facts={"ds_report_fails": ""})),
    ("12.2-1", dict(env={"TORCH_CUDA_ARCH_LIST": "6.1 8.6+PTX"}, facts={"nvcc": "13.0"}), dict(env={"TORCH_CUDA_ARCH_LIST": "7.0;8.0"}, facts={"nvcc": "12.4"})),
    ("12.2-1", dict(facts={"nvcc": "12.4", "gpu": [{"compute_cap": "12.0"}]}), dict(facts={"nvcc": "12.8", "gpu": [{"compute_cap": "12.0"}]})),
    ("12.2-2", dict(config=zero(2), facts={"gpus": 8, "nvcc": "none"}), dict(config=zero(2), facts={"gpus": 8, "nvcc": "none", "ops": {"fused_adam": {"installed": True}}})),
    ("12.2-2", dict(config=zero(2), facts={"ops": {"fused_adam": {"compatible": False}}}), dict(config=zero(2), facts={"ops": {"fused_adam": {"compatible": True}}})),
    ("12.2-3", dict(config=offloaded(), facts={"gxx": "none"}), dict(config=zero(2), facts={"gxx": "none"})),
    ("12.2-4", dict(config=nvme("/mnt/a"), facts={"libaio": False}), dict(config=offloaded(), facts={"libaio": False})),
    ("X-12", dict(facts={"nvcc": "11.8", "torch_cuda": "12.4"}), dict(facts={"nvcc": "12.1", "torch_cuda": "12.4"})),
    ("X-12", dict(facts={"nvcc": "13.1", "torch_cuda": "13.0"}), dict(facts={"nvcc": "13.0", "torch_cuda": "13.0"})),
    ("X-13", dict(facts={"gxx": "14.2.0", "nvcc": "12.2"}), dict(facts={"gxx": "12.2.0", "nvcc": "12.2"})),
    ("X-11", dict(facts={"jit_locks": [{"path": "/c/lock", "age_s": 7200}]}), dict(facts={"jit_locks": [{"path": "/c/lock", "age_s": 20, "building": True}]})),
    ("X-11", dict(config=zero(2), facts=locked("fused_adam")), dict(config=offloaded(), facts=locked("fused_adam"))),
    ("X-11", dict(config=zero(2, None), facts=locked("fused_adam")), dict(config=zero(2, {"type": "Lion", "params": {}}), facts=locked("fused_adam"))),
    ("X-11", dict(config=offloaded(), facts=locked("cpu_adam")), dict(config=zero(2), facts=locked("cpu_adam"))),
    ("X-11", dict(facts=locked("deepspeed_shm_comm", cuda_available=False)), dict(facts=locked("deepspeed_shm_comm", cuda_available=True))),
    ("X-11", dict(config=offloaded(), facts=locked("my_own_op")), dict(config=offloaded(), facts=locked("my_own_op", age_s=30))),
    *[("D-04", dict(config=plain(optimizer={"type": "AdamW", "params": wrong})), dict(config=plain(optimizer={"type": "AdamW", "params": right}))) for wrong, right in (
        ({"lr": "1e-4"}, {"lr": 1e-4}), ({"learning_rate": 1e-4}, {"lr": 1e-4, "torch_adam": True, "adam_w_mode": True}), ({"beta1": 0.9}, {"betas": [0.9, 0.95], "amsgrad": False}))],
    ("D-04", dict(config=plain(optimizer={"type": "AdamW", "lr": 1e-4})), dict(config=plain(optimizer={"type": "AdamW", "legacy_fusion": False, "params": {"lr": 1e-4}}))),
    ("D-04", dict(config=plain(optimizer=ADAM, scheduler={"type": "WarmupLR", "params": {"warmup_steps": 100}})),
     dict(config=plain(optimizer=ADAM, scheduler={"type": "WarmupLR", "params": {"warmup_num_steps": 100, "warmup_type": "linear"}}))),
    ("D-04", dict(config=plain(optimizer=ADAM, scheduler={"type": "WarmupLR", "warmup_num_steps": 100})),
     dict(config=plain(optimizer={"type": "SGD", "params": {"lr": 0.1, "my_own": 1}}, scheduler={"type": "StepLR", "params": {"step_size": 4}}))),
    ("D-04", dict(config=plain(optimizer=ADAM, scheduler={"type": "WarmupLR", "params": {"warmup_max_lr": "1e-4"}})),
     dict(config=plain(optimizer=ADAM, scheduler={"type": "WarmupLR", "params": {"warmup_max_lr": "auto"}}), facts={"trainer": "hf"})),
    ("D-05", dict(config=zero(3, zero_hpz_partition_size=3)), dict(config=zero(3, zero_hpz_partition_size=4))),
    ("D-05", dict(config=zero(3, zero_hpz_partition_size=3)), dict(config=zero(3, zero_hpz_partition_size=8), facts={"world_size": 4})),
    ("12.9-6", dict(facts={"ops_built_with": "2.4"}), dict(facts={"ops_built_with": "0.0"})),
    ("X-32", dict(facts={"gpu": [{"compute_cap": "12.0"}], "torch_archs": ["sm_80", "sm_90"]}),
     dict(facts={"gpu": [{"compute_cap": "12.0"}], "torch_archs": ["sm_80", "compute_90"]})),
    ("X-43", dict(facts={"driver": True, "torch": "2.14.1+cpu"}), dict(facts={"driver": False, "torch": "2.14.1+cpu"})),
    ("X-08", dict(facts={"shm_bytes": 64 << 20}), dict(facts={"shm_bytes": 64 << 20, "world_size": 1})),
    ("X-40", dict(facts={"open_files": 1024}), dict(facts={"open_files": 65536})),
    ("X-45", dict(config=offloaded(), facts={"memlock_bytes": 65536}), dict(config=offloaded(pin_memory=False), facts={"memlock_bytes": 65536})),
    ("X-45", dict(config=offloaded(), facts={"memlock_bytes": 65536}), dict(config=offloaded(), facts={"memlock_bytes": 65536, "deepspeed": "0.19.2"})),
    ("12.1-2", dict(facts={"gpu": [{"memory_bytes": 80 * GIB, "foreign_bytes": 30 * GIB}]}),
     dict(facts={"gpu": [{"memory_bytes": 8 * GIB, "foreign_bytes": 450 << 20}]})),
    ("12.6-1", dict(config=zero(1), facts={"parameters": 7e9, "gpu": [{"memory_bytes": 24 * GIB}]}),
     dict(config=zero(3), facts={"parameters": 7e9, "gpu": [{"memory_bytes": 24 * GIB}]})),
    ("12.6-1", dict(config=zero(0), model=LLAMA, facts={"gpu": [{"memory_bytes": 80 * GIB}]}), dict(config=zero(2), model=LLAMA, facts={"gpu": [{"memory_bytes": 80 * GIB}]})),
    ("X-01", dict(config=offloaded(), facts={"parameters": 7e9, "memory_bytes": 64e9}), dict(config=offloaded(), facts={"parameters": 7e9, "memory_bytes": 128e9})),
    ("12.6-3", dict(config=zero(3), facts={"parameters": 70e9, "memory_bytes": 128e9}), dict(config=zero(3), facts={"parameters": 70e9, "memory_bytes": 256e9})),
    ("12.8-1", dict(model={**LLAMA, "num_key_value_heads": 2}, facts={"tp_size": 4}), dict(model={**LLAMA, "num_key_value_heads": 4}, facts={"tp_size": 4})),
    ("12.8-1", dict(model={**LLAMA, "num_attention_heads": 6}, facts={"tp_size": 4, "kernel_inject": True}),
     dict(model={**LLAMA, "num_attention_heads": 6}, facts={"tp_size": 4})),
    ("D-06", dict(model="\ufeff" + json.dumps(LLAMA)), dict(model=json.dumps({**LLAMA, "_note": "\ufeff"}, ensure_ascii=False))),
    ("X-48", dict(config=zero(3, reduce_bucket_size="auto"), model={"text_config": {"hidden_size": 8}}, facts={"trainer": "hf"}),
     dict(config=zero(3, reduce_bucket_size=5e8), model={"text_config": {"hidden_size": 8}}, facts={"trainer": "hf"})),
    ("X-39", dict(facts={"tp_size": 4, "world_size": 2}), dict(facts={"tp_size": 2, "world_size": 2})),
    ("X-39", dict(config=plain(tensor_parallel={"autotp_size": 3})), dict(config=plain(tensor_parallel={"autotp_size": 4}))),
    ("12.8-2", dict(model={**LLAMA, "architectures": ["Qwen2ForCausalLM"]}, facts={"kernel_inject": True}),
     dict(model={**LLAMA, "architectures": ["Qwen2ForCausalLM"]}, facts={"kernel_inject": False})),
    ("12.7-2", dict(checkpoint=SHARDS[:2] + SHARDS[3:]), dict(checkpoint=SHARDS, facts={"world_size": 2})),
    ("12.7-2", dict(checkpoint=[name.split("/")[-1] for name in SHARDS[1:]]), dict(checkpoint=["latest=step1", *SHARDS], facts={"world_size": 2})),
    ("12.7-2", dict(checkpoint=["latest=step9", *SHARDS[1:]]), dict(checkpoint=SHARDS)),
    ("12.7-3", dict(checkpoint=SHARDS[1:]), dict(checkpoint=SHARDS)),
    ("12.7-4", dict(checkpoint=SHARDS, facts={"world_size": 4}), dict(checkpoint=SHARDS, facts={"world_size": 2})),
    ("12.7-4", dict(checkpoint=SHARDS, config=zero(3), facts={"world_size": 2}), dict(checkpoint=SHARDS, config=zero(1), facts={"world_size": 2})),
    ("12.7-4", dict(checkpoint=SHARDS, config=plain(checkpoint={"load_universal": True}), facts={"world_size": 2}),
     dict(checkpoint=[*SHARDS, "latest_universal=u", "u/zero/w/fp32.pt"], config=plain(checkpoint={"load_universal": True}))),
    ("12.13-4", dict(checkpoint=SHARDS, config=zero(2), facts={"world_size": 2, "checkpoint_optimizer": "Muon"}),
     dict(checkpoint=SHARDS, config=zero(2), facts={"world_size": 2, "checkpoint_optimizer": "AdamW"})),
]


def ids(tmp_path, case, name):
    (tmp_path / name).mkdir()
    return [finding["id"] for finding in told(tmp_path / name, **case)]


@pytest.mark.parametrize("rule, trigger, near", CASES, ids=[f"{number}-{case[0]}" for number, case in enumerate(CASES)])
def test_speaks_on_its_trigger_and_not_on_a_near_miss(rule, trigger, near, tmp_path):
    assert rule in ids(tmp_path, trigger, "trigger")
    assert rule not in ids(tmp_path, near, "near")


def safetensors(path, shapes):
    header = json.dumps({name: {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]} for name, shape in shapes.items()}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)


@pytest.mark.parametrize("rule, file", [("X-28", "model.safetensors"), ("12.8-3", "adapter_model.safetensors")])
def test_weights_saved_empty(rule, file, tmp_path):
    (tmp_path / "latest").write_text("step1")
    (tmp_path / "step1").mkdir()
    (tmp_path / "step1" / "mp_rank_00_model_states.pt").write_text("")
    safetensors(tmp_path / file, {"a": [4, 4], "b": [0]})
    assert [one["id"] for one in findings("--checkpoint", tmp_path, "--facts", "-", text="{}")] == [rule]
    safetensors(tmp_path / file, {"a": [4, 4], "b": [4]})
    assert findings("--checkpoint", tmp_path, "--facts", "-", text="{}") == []


def test_a_disk_that_fills(tmp_path):
    (tmp_path / "latest").write_text("step1")
    (tmp_path / "step1").mkdir()
    with open(tmp_path / "step1" / "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt", "wb") as file:
        file.truncate(1 << 42)  # 4 TiB without a block
    arguments = ["--checkpoint", tmp_path, "--facts", "-"]
    assert [one["id"] for one in findings(*arguments, text='{"world_size": 1}')] == ["12.7-5"]
    with open(tmp_path / "step1" / "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt", "wb") as file:
        file.truncate(1 << 20)
    assert findings(*arguments, text='{"world_size": 1}') == []


def test_what_nodes_have_in_common_is_told_once():
    many = [node(f"n{number}", 8, gpus="8", shm_bytes="67108864", torch="2.14.1") for number in range(9)]
    many.append(node("odd", 8, gpus="8", shm_bytes=str(64 << 30), torch="2.5.1"))
    found = {one["id"]: one for one in findings("--facts", "-", text=json.dumps({"nodes": 10, "other_nodes": many}))}
    assert set(found) == {"12.9-2", "X-08"}
    assert found["X-08"]["summary"] == "on n0, n1, n2, n3 and 5 more: /dev/shm has 64 MiB for 8 ranks"
    assert "torch is 2.5.1 on odd, 2.14.1 on n0, n1, n2, n3 and 5 more" in found["12.9-2"]["summary"]
    assert (found["12.9-2"]["severity"], found["12.9-2"]["where"]) == ("error", "odd")


def test_limits_that_differ_are_no_error():
    found = findings("--facts", "-", text=json.dumps(nodes({"open_files": "65536"}, {"open_files": "524288"})))
    assert [(one["id"], one["severity"]) for one in found] == [("12.9-2", "warning")]


def test_every_rule_has_a_case():
    rules = {rule["id"] for rule in json.loads(doctor("--rules", "--json").stdout)["rules"]}
    assert rules == {case[0] for case in CASES} | {"X-28", "12.8-3", "12.7-5"}


def test_a_loss_scale_that_fits_into_no_float_fails(tmp_path):
    found = told(tmp_path, config={"train_micro_batch_size_per_gpu": 1, "fp16": {"enabled": True, "initial_scale_power": 65536}, "gradient_clipping": 1.0})
    assert [(one["id"], one["severity"], one["fix"]) for one in found] == [("12.5-4", "error", ["Give the power, not the scale: 16."])]
