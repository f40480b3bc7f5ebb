"""messages.py FOLDER: makes the installed torch and DeepSpeed fail in known ways, each into FOLDER/<entry>.<name>.log."""
import json
import os
import socket
import sys
import tempfile
import traceback
import types
from datetime import timedelta

os.environ.update(DS_ACCELERATOR="cpu", RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1",
                  TORCH_EXTENSIONS_DIR=sys.argv[1])
import torch
import torch.distributed as dist
import torch.nn.functional as F
import deepspeed
from deepspeed.runtime.config import DeepSpeedConfig

# DeepSpeed would compile these.
sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None
deepspeed.ops.op_builder.UtilsBuilder.load = lambda self, verbose=True: types.SimpleNamespace(
    flatten=torch._utils._flatten_dense_tensors, unflatten=torch._utils._unflatten_dense_tensors)
FOLDER = sys.argv[1]
CASES = []


def case(entry):
    return lambda function: CASES.append((entry, function.__name__, function))


def configs(entry, **named):
    for name, config in named.items():
        CASES.append((entry, name, lambda config=config: DeepSpeedConfig(config)))


def text_file(text):
    path = tempfile.mktemp(suffix=".json")
    with open(path, "w") as file:
        file.write(text)
    return path


def with_zero(**keys):
    return {"train_micro_batch_size_per_gpu": 1, "zero_optimization": keys}


configs("12.3-1", product={"train_batch_size": 30, "train_micro_batch_size_per_gpu": 4}, none={"bf16": {"enabled": True}},
        nothing={"train_micro_batch_size_per_gpu": 0})
configs("12.3-2", both={"train_batch_size": 8, "fp16": {"enabled": True}, "bf16": {"enabled": True}})
configs("12.1-5", choice=with_zero(stage=2, offload_optimizer={"device": "gpu"}), type=with_zero(stage="two"))
configs("X-22", zero=with_zero(stage=2, offload_optimiser={}), fp16={"train_batch_size": 1, "fp16": {"enabled": True, "opt_level": "O1"}})
configs("X-23", bucket=with_zero(stage=3, stage3_prefetch_bucket_size=15099494.4))
configs("X-24", ratio=with_zero(stage=2, offload_optimizer={"device": "cpu", "ratio": 0.5}))
configs("X-26", amp={"train_batch_size": 1, "amp": {"enabled": False}}, elastic={"train_batch_size": 1, "elasticity": {}},
        mics=with_zero(stage=3, mics_shard_size=2))
configs("X-38", twice=text_file('{"train_batch_size": 1, "train_batch_size": 2}'), broken=text_file('{"train_batch_size": 1,\n'),
        block={"train_batch_size": 1, "fp16": True})
configs("X-05", auto={"train_batch_size": "auto", "train_micro_batch_size_per_gpu": 2})
configs("12.3-5", missing="ds_config.json", decodes="ds_nope.json")
configs("12.1-4", text={"train_batch_size": 1, "wall_clock_breakdown": "true"})


@case("12.3-3")
def port_in_use():
    with socket.create_server(("0.0.0.0", 0)) as server:
        dist.TCPStore("127.0.0.1", server.getsockname()[1], 1, True, timedelta(seconds=5))


@case("12.3-3")
def port_in_use_old_store():
    with socket.create_server(("0.0.0.0", 0)) as server:
        dist.TCPStore("127.0.0.1", server.getsockname()[1], 1, True, timedelta(seconds=5), use_libuv=False)


@case("12.9-3")
def nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    dist.TCPStore("127.0.0.1", port, 2, False, timedelta(seconds=1))


@case("E-05")
def key_that_does_not_come():
    store = dist.TCPStore("127.0.0.1", 0, 1, True, timedelta(seconds=5))
    store.set_timeout(timedelta(milliseconds=200))
    store.get("never")


@case("12.3-6")
def no_launcher():
    rank = os.environ.pop("RANK")
    try:
        dist.init_process_group("gloo")
    finally:
        os.environ["RANK"] = rank


@case("X-41")
def float_batch():
    torch.nn.Linear(4, 4).bfloat16()(torch.ones(2, 4))


@case("X-02")
def embedding():
    F.embedding(torch.tensor([0]), torch.empty(0))


@case("X-02")
def addition():
    torch.empty(0) + torch.ones(4096)


@case("X-02")
def norm():
    F.layer_norm(torch.ones(2, 4), (4,), torch.empty(0))


@case("X-02")
def initialised():
    torch.nn.init.xavier_uniform_(torch.empty(0))


@case("X-02")
def convolution():
    F.conv2d(torch.ones(1, 1, 4, 4), torch.empty(0))


@case("X-42")
def nothing_to_train():
    torch.optim.AdamW([])


@case("X-07")
def pickled_class():
    from deepspeed.runtime.fp16.loss_scaler import LossScaler
    path = tempfile.mktemp()
    torch.save({"scaler": LossScaler(1.0)}, path)
    torch.load(path)


@case("X-16")
def released_before_recomputation():
    from torch.utils.checkpoint import checkpoint
    weight = [torch.ones(4)]
    out = checkpoint(lambda value: value.sum() * weight[0], torch.ones(4, requires_grad=True), use_reentrant=False)
    weight[0] = torch.empty(0)
    out.sum().backward()


@case("X-28")
def empty_weights():
    torch.nn.Embedding(16, 4).load_state_dict({"weight": torch.empty(0)})


def engine(config, model=None, optimizer=None, **more):
    """Of one rank on the CPU."""
    config = {"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True}, **config}
    model = model or torch.nn.Linear(4, 4)
    parameters = None if optimizer else model.parameters()
    return deepspeed.initialize(model=model, config=config, optimizer=optimizer(model.parameters()) if optimizer else None,
                                model_parameters=parameters, **more)[0]


ADAM = {"optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": True}}}


@case("X-29")
def untested_optimizer():
    engine({"zero_optimization": {"stage": 2}}, optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.1))


@case("X-30")
def no_optimizer():
    engine({"zero_optimization": {"stage": 2}})


@case("X-27")
def foreign_offload():
    engine({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}},
           optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=0.1))


@case("X-34")
def unknown_scheduler():
    engine({**ADAM, "scheduler": {"type": "Cosine", "params": {}}})


@case("X-34")
def scheduler_without_total():
    engine({**ADAM, "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": 3}}})


@case("X-37")
def norm_in_parameters():
    engine({"optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": True, "max_grad_norm": 1.0}}})


@case("12.12-2")
def flow_without_offload():
    engine({**ADAM, "zero_optimization": {"stage": 2, "zenflow": {"select_strategy": "step", "select_interval": 4, "update_interval": 2}}})


@case("X-36")
def flow_interval():
    engine({**ADAM, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "zenflow": {"select_interval": 5}}})


@case("X-49")
def backward_on_the_loss():
    one = engine(ADAM)
    one(torch.ones(2, 4, dtype=torch.bfloat16)).mean().backward()


@case("X-09")
def no_sync():
    with engine({**ADAM, "zero_optimization": {"stage": 2}}).no_sync():
        pass


@case("12.7-3")
def nothing_to_load():
    engine({**ADAM, "zero_optimization": {"stage": 1}}).load_checkpoint(tempfile.mkdtemp())


@case("12.7-1")
def weights_not_gathered():
    # The line is no warning.
    one = engine({**ADAM, "zero_optimization": {"stage": 3}, "log_level": "info"})
    one.save_16bit_model(tempfile.mkdtemp())


@case("12.7-2")
def merged_from_a_tag():
    from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint
    get_fp32_state_dict_from_zero_checkpoint(tempfile.mkdtemp())


@case("12.7-2")
def merged_from_the_wrong_folder():
    from deepspeed.utils.zero_to_fp32 import convert_zero_checkpoint_to_fp32_state_dict
    convert_zero_checkpoint_to_fp32_state_dict(tempfile.mkdtemp(), tempfile.mkdtemp())


def main():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    kept = os.dup(1), os.dup(2)
    for entry, name, function in CASES:
        log = os.open(os.path.join(FOLDER, f"{entry}.{name}.log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        sys.stdout.flush()
        os.dup2(log, 1)
        os.dup2(log, 2)
        if name in ("no_launcher",):
            dist.destroy_process_group()
        try:
            function()
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(kept[0], 1)
        os.dup2(kept[1], 2)
        os.close(log)
        if not dist.is_initialized():
            dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    print(json.dumps({"cases": len(CASES), "torch": torch.__version__, "deepspeed": deepspeed.__version__}))
    os._exit(0)


if __name__ == "__main__":
    main()
