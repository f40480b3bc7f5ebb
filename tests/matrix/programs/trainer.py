"""Hugging Face Trainer with ZeRO-3, evaluating and saving; a tiny Llama made at random, nothing is downloaded.

    deepspeed --num_gpus 2 trainer.py            accelerate launch ... trainer.py

--mistake skip: rank 1 leaves out a layer of the user's own from step 4 on.
--mistake save: rank 0 alone saves the model after step 4.
"""
import argparse
import os
import tempfile

import common  # noqa: F401
import torch
from torch.utils.data import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

from small_model import say

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--mistake", choices=("skip", "save"))
parser.add_argument("--local_rank", type=int, default=0)
args = parser.parse_args()
RANK = int(os.environ["RANK"])
LENGTH, VOCABULARY, WIDTH = 8, 64, 32
CONFIG = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1, "bf16": {"enabled": True},
          "gradient_clipping": 1.0, "steps_per_print": 10 ** 9,
          "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
          "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0,
                                "stage3_gather_16bit_weights_on_model_save": True}}


class Sentences(Dataset):
    def __init__(self, count):
        self.rows = torch.randint(0, VOCABULARY, (count, LENGTH), generator=torch.Generator().manual_seed(count))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, number):
        return {"input_ids": self.rows[number], "labels": self.rows[number]}


class Model(LlamaForCausalLM):
    """A Llama with a layer of the user's own behind the embedding."""

    def __init__(self, config):
        super().__init__(config)
        self.own = torch.nn.Linear(config.hidden_size, config.hidden_size)
        self.passes = 0
        self.post_init()

    def forward(self, input_ids=None, labels=None, **kwargs):
        x = self.get_input_embeddings()(input_ids)
        self.passes += self.training
        if not (args.mistake == "skip" and RANK == 1 and self.passes > 4):
            x = x + self.own(x)
        return super().forward(inputs_embeds=x, labels=labels, **kwargs)


class Say(TrainerCallback):
    def on_step_end(self, arguments, state, control, **kwargs):
        if args.mistake == "save" and RANK == 0 and state.global_step == 4:
            trainer.save_model(folder + "-best")

    def on_log(self, arguments, state, control, logs=None, **kwargs):
        for key, name in (("loss", "loss"), ("eval_loss", "evaluation")):
            if key in logs:
                say(RANK, f"step {state.global_step} {name} {float(logs[key]):.6f}")


folder = os.path.join(tempfile.gettempdir(), "trainer-%s" % os.environ["MASTER_PORT"])
arguments = TrainingArguments(
    folder, max_steps=args.steps, per_device_train_batch_size=2, per_device_eval_batch_size=2, learning_rate=1e-3,
    eval_strategy="steps", eval_steps=3, save_strategy="steps", save_steps=3, logging_steps=1, report_to="none", bf16=True,
    disable_tqdm=True, deepspeed=CONFIG, seed=0, hub_token="hf_" + "MadeUp4a" * 4)
torch.manual_seed(0)
model = Model(LlamaConfig(vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=2 * WIDTH, num_hidden_layers=3,
                          num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=LENGTH))
trainer = Trainer(model=model, args=arguments, train_dataset=Sentences(4 * args.steps), eval_dataset=Sentences(12),
                  callbacks=[Say()])
trainer.train()
trainer.save_model(folder)
say(RANK, "saved " + " ".join(sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))))
torch.distributed.destroy_process_group()
