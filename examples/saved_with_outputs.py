"""ZeRO-3: the outputs of an evaluation stay on the device, and the weights that a save gathers do not fit beside them.

    dshang dry-run -n 2 --gpu t4-16g -- deepspeed --num_gpus 2 examples/saved_with_outputs.py --mistake
    dshang dry-run -n 2 --gpu t4-16g -- deepspeed --num_gpus 2 examples/saved_with_outputs.py    the repaired program

save_16bit_model gathers each module's weights whole on every rank's device before they go to the host of rank 0.
The repair: of each output only what is needed is kept, on the host.
"""
import shutil
import tempfile

import deepspeed
import torch
import torch.distributed as dist

from memory_model import WithHead, config, samples
from small_model import arguments, say, this_rank

VOCABULARY, EVALUATED, LENGTH = 524288, 4, 592

args = arguments(mistake="outputs are kept on the device, and put together there")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
settings = config(3, 1)
settings.update(optimizer={"type": "SGD", "params": {"lr": 1e-3}}, zero_allow_untested_optimizer=True)
settings["zero_optimization"]["stage3_gather_16bit_weights_on_model_save"] = True
with deepspeed.zero.Init(config_dict_or_path=settings):
    model = WithHead(VOCABULARY)
engine, _, _, _ = deepspeed.initialize(model=model, config=settings)
folder = [tempfile.mkdtemp() if rank == 0 else None]
dist.broadcast_object_list(folder)
for step in range(max(args.steps, 4)):
    engine.backward(engine(samples(1, 256, device)).float().pow(2).mean())
    engine.step()
    say(rank, f"step {step} done")
engine.eval()
outputs = []
with torch.no_grad():
    for _ in range(EVALUATED):
        output = engine(samples(2, LENGTH, device))
        outputs.append(output if args.mistake else output.argmax(-1).cpu())
    del output
    predictions = torch.cat(outputs)
say(rank, "saves")
engine.save_16bit_model(folder[0])
say(rank, "saved")
if rank == 0:
    shutil.rmtree(folder[0])
dist.destroy_process_group()
