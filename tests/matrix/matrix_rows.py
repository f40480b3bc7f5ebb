"""The rows of the matrix: what is installed, how it is started, what must come out."""
import os
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "examples")

DEEPSPEED = ("0.19.8", "0.18.9", "0.17.6", "0.16.9", "0.15.4", "0.14.5")
IN_ENVIRONMENT = "0.19.8"     # scripts/venv installs it

ZERO3_FACTS = ("forward visits", "backward visits", "recompute visits", "steps", "micro-steps", "phases", "gathers",
               "trace mode", "loader", "batches", "allocator", "config", "versions", "data-parallel ranks", "backward")
TRAINER_FACTS = tuple(name for name in ZERO3_FACTS if name not in ("recompute visits", "micro-steps"))
PLAIN_FACTS = ("forward visits", "steps", "phases", "loader", "batches", "allocator", "versions", "data-parallel ranks")


@dataclass
class Mistake:
    command: list
    kind: str                     # class of the first finding
    rank: int
    file: str                     # of the user
    line: str                     # text of the line that must be named
    module: str = None


@dataclass
class Row:
    name: str
    packages: list                # to be installed beside the environment
    healthy: list                 # a command
    mistakes: list
    facts: tuple                  # which must be recorded
    told: tuple                   # packages whose versions the table tells
    direct: bool = False          # whether loss.backward() is tried in every stage
    lines: str = r"^\[rank (\d+)\] (step \d+ (?:loss|evaluation)) (\S+)$"
    settings: dict = field(default_factory=dict)
    arguments: dict = field(default_factory=dict)       # what the bug report must tell of TrainingArguments
    secret: str = ""                                    # what it must not


def program(name):
    return os.path.join(HERE, "programs", name + ".py")


def deepspeed(path, *arguments):
    return ["deepspeed", "--num_gpus", "2", "--master_port", "{port}", path, *arguments]


def torchrun(path, *arguments):
    return ["torchrun", "--nproc_per_node", "2", "--master_port", "{port}", path, *arguments]


def accelerate(path, *arguments):
    return ["accelerate", "launch", "--use_deepspeed", "--num_processes", "2", "--num_machines", "1", "--mixed_precision",
            "bf16", "--main_process_port", "{port}", path, *arguments]


def deepspeed_row(version):
    block = os.path.join(EXAMPLES, "skipped_block.py")
    return Row("DeepSpeed " + version, [] if version == IN_ENVIRONMENT else ["deepspeed==" + version],
               deepspeed(program("zero3"), "--steps", "4"),
               [Mistake(deepspeed(block, "--mistake"), "module-skipped", 1, "skipped_block.py", "y = block(x)", "blocks.5")],
               ZERO3_FACTS, ("deepspeed",), direct=True)


def rows():
    hugging = ["transformers", "accelerate"]
    skip = dict(kind="module-skipped", rank=1)
    trainer, lightning, ddp, fsdp = (program(name) for name in ("trainer", "lightning_job", "ddp", "fsdp2"))
    return [deepspeed_row(version) for version in DEEPSPEED] + [
        Row("Hugging Face Trainer, deepspeed", hugging, deepspeed(trainer),
            [Mistake(deepspeed(trainer, "--mistake", "skip"), file="trainer.py", line="x = x + self.own(x)", module="own", **skip)],
            TRAINER_FACTS, ("transformers", "accelerate", "deepspeed"),
            arguments={"max_steps": 6, "learning_rate": 1e-3, "eval_strategy": "steps", "save_steps": 3, "bf16": True},
            secret="MadeUp4a" * 4),
        Row("Hugging Face Trainer, accelerate launch", hugging, accelerate(trainer),
            [Mistake(accelerate(trainer, "--mistake", "save"), "rank-conditional-call", 0, "trainer.py",
                     'trainer.save_model(folder + "-best")')],
            TRAINER_FACTS, ("transformers", "accelerate", "deepspeed")),
        Row("Lightning, DeepSpeedStrategy", ["lightning"], ["python", lightning],
            [Mistake(torchrun(lightning, "--mistake"), file="lightning_job.py", line="x = self.second(x)", module="second",
                     **skip)],
            TRAINER_FACTS, ("lightning", "deepspeed")),
        Row("DistributedDataParallel", [], torchrun(ddp),
            [Mistake(torchrun(ddp, "--mistake"), "argument-mismatch", 1, "ddp.py", "dist.all_reduce(values")],
            PLAIN_FACTS, ()),
        Row("FSDP2", [], torchrun(fsdp),
            [Mistake(torchrun(fsdp, "--mistake"), file="fsdp2.py", line="x = block(x)", module="blocks.5", **skip)],
            PLAIN_FACTS + ("backward visits",), ()),
    ]
