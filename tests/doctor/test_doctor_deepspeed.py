"""The doctor's tables against the DeepSpeed and torch that are installed: every key, optimizer and scheduler that they know
is known, every block that DeepSpeed has removed is told."""
import json
import os
import subprocess
import sys

import pytest

from doctor_cli import doctor, findings

ASK = r"""
import enum, inspect, json, sys
import torch
from deepspeed.comm.config import CommsLoggerConfig
from deepspeed.compile.config import CompileConfig
from deepspeed.monitor.config import CometConfig, CSVConfig, TensorBoardConfig, WandbConfig
from deepspeed.runtime import config as runtime, lr_schedules
from deepspeed.runtime.precision_config import DeepSpeedBF16Config, DeepSpeedFP16Config
from deepspeed.runtime.tensor_parallel.config import TPTrainingConfig
from deepspeed.runtime.zenflow.zenflow_config import ZenFlowConfig
from deepspeed.runtime.zero.config import DeepSpeedZeroConfig
from deepspeed.runtime.zero.leaf_module_config import DeepSpeedZeroLeafModuleConfig
from deepspeed.runtime.zero.offload_config import DeepSpeedZeroOffloadOptimizerConfig, DeepSpeedZeroOffloadParamConfig

sections = {
    "zero_optimization": DeepSpeedZeroConfig, "zero_optimization.offload_param": DeepSpeedZeroOffloadParamConfig,
    "zero_optimization.offload_optimizer": DeepSpeedZeroOffloadOptimizerConfig, "zero_optimization.zenflow": ZenFlowConfig,
    "zero_optimization.leaf_module": DeepSpeedZeroLeafModuleConfig, "fp16": DeepSpeedFP16Config, "bf16": DeepSpeedBF16Config,
    "tensor_parallel": TPTrainingConfig, "comms_logger": CommsLoggerConfig, "tensorboard": TensorBoardConfig, "wandb": WandbConfig,
    "csv_monitor": CSVConfig, "comet": CometConfig, "hybrid_engine": runtime.HybridEngineConfig, "compile": CompileConfig,
}

def plain(field):
    value = field.get_default(call_default_factory=True)
    value = value.value if isinstance(value, enum.Enum) else value
    return int(value) if type(value).__name__ == "pp_int" else value

def keys(model):
    told = {}
    for name, field in model.model_fields.items():
        for key in {name, field.alias or name}:
            value = plain(field)
            told[key] = value if isinstance(value, (bool, int, float, str, list)) else None
    return told

classes = lambda module, base: [name for name, one in inspect.getmembers(module, inspect.isclass) if issubclass(one, base) and one is not base]
told = {
    "sections": {name: keys(model) for name, model in sections.items()},
    "removed": [*runtime._REMOVED_TOP_LEVEL_CONFIG_KEYS], "removed_of_zero": [*runtime._REMOVED_ZERO_CONFIG_KEYS],
    "optimizers": [*runtime.DEEPSPEED_OPTIMIZERS, *classes(torch.optim, torch.optim.Optimizer)],
    "schedules": [*lr_schedules.VALID_LR_SCHEDULES,
                  *(name for name in classes(torch.optim.lr_scheduler, torch.optim.lr_scheduler.LRScheduler) if not name.startswith("_"))],
}
json.dump(told, sys.stdout)
"""
BASE = {"train_micro_batch_size_per_gpu": 1}


@pytest.fixture(scope="module")
def known():
    told = subprocess.run([sys.executable, "-c", ASK], env=dict(os.environ, DS_ACCELERATOR="cpu"), capture_output=True, text=True, timeout=300)
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout[told.stdout.index('{"sections"'):])


def ids(tmp_path, config):
    path = tmp_path / "c.json"
    path.write_text(json.dumps({**BASE, **config}))
    return {one["id"] for one in findings(path, "--facts", "-", text="{}")}


def placed(section, content):
    for name in reversed(section.split(".")):
        content = {name: content}
    return content


def test_every_key_of_a_checked_section_is_known_and_its_default_taken(known, tmp_path):
    assert len(known["sections"]["zero_optimization"]) > 40
    for section, keys in known["sections"].items():
        assert not ids(tmp_path, placed(section, keys)) & {"X-22", "X-23", "12.1-5", "X-21", "X-38"}, section
        assert "X-22" in ids(tmp_path, placed(section, {"no_such_key_anywhere": 1})), section


def test_every_removed_block_is_told(known, tmp_path):
    for name in known["removed"]:
        assert ids(tmp_path, {name: {}}) == {"X-26"}, name
    for name in known["removed_of_zero"]:
        assert ids(tmp_path, {"zero_optimization": {"stage": 3, name: 1}}) == {"X-26"}, name


def test_every_optimizer_and_scheduler_is_known(known, tmp_path):
    for name in known["optimizers"]:
        assert "X-30" not in ids(tmp_path, {"optimizer": {"type": name, "params": {}}}), name
    for name in known["schedules"]:
        config = {"scheduler": {"type": name, "params": {"total_num_steps": 10}}}
        assert "X-34" not in ids(tmp_path, config), name


def test_the_installed_deepspeed_is_asked_when_wanted(tmp_path):
    (tmp_path / "c.json").write_text(json.dumps({"train_batch_size": 8, "data_types": {"keep_in_fp32_modules": 3}}))
    launch = ["--", sys.executable, "train.py"]
    assert json.loads(doctor(tmp_path / "c.json", "--only", "config", "--json", *launch).stdout)["findings"] == []
    told = doctor(tmp_path / "c.json", "--only", "config", "--json", "--validate", *launch)
    found = json.loads(told.stdout)["findings"]
    assert [one["id"] for one in found] == ["D-02"], told.stdout
    assert "DeepSpeedConfigError: data_types.keep_in_fp32_modules must be" in found[0]["summary"]


def test_a_python_without_deepspeed_is_said(tmp_path):
    (tmp_path / "c.json").write_text(json.dumps({"train_batch_size": 8}))
    (tmp_path / "python").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "python").chmod(0o755)
    told = json.loads(doctor(tmp_path / "c.json", "--only", "config", "--json", "--validate", "--", tmp_path / "python", "train.py").stdout)
    assert told["findings"] == [] and any("cannot be imported" in note for note in told["not_checked"])


FAKE_PYTHON = """#!/bin/sh
# A DeepSpeed of its own in the place of the installed one.
[ "$*" = "-m deepspeed.env_report" ] || exit 3
cat "${0%/bin/python}/report"
exit "$(cat "${0%/bin/python}/status")"
"""
OFFLOADED = {"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}, "bf16": {"enabled": True},
             "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": False}}}


@pytest.fixture
def faked(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").write_text(FAKE_PYTHON)
    (tmp_path / "bin" / "python").chmod(0o755)
    (tmp_path / "lib" / "python3.11" / "site-packages" / "deepspeed-0.19.8.dist-info").mkdir(parents=True)
    (tmp_path / "c.json").write_text(json.dumps(OFFLOADED))

    def ask(report, status):
        (tmp_path / "report").write_text(report)
        (tmp_path / "status").write_text(str(status))
        told = doctor(tmp_path / "c.json", "--only", "machine", "--json", "--validate", "--", tmp_path / "bin" / "python", "train.py")
        return {one["id"]: one["summary"] for one in json.loads(told.stdout)["findings"]}
    return ask


def test_what_ds_report_says_of_ops_counts(faked):
    row = "cpu_adam ............... \x1b[93m[NO]\x1b[0m ....... \x1b[92m[{}]\x1b[0m\n"
    assert "ds_report: [NO] … [NO]" in faked(row.format("NO"), 0)["12.2-3"]
    assert not {"12.2-3", "12.1-1"} & set(faked(row.format("OKAY"), 0))


def test_a_ds_report_that_fails_is_told(faked):
    told = faked("Traceback (most recent call last):\nImportError: libcudart.so.12: cannot open shared object file\n", 1)
    assert told["12.1-1"] == "DeepSpeed 0.19.8 is installed, and ds_report fails: ImportError: libcudart.so.12: cannot open shared object file"


if os.environ.get("E2E_LONG") == "1":                             # DeepSpeed is imported once more
    def test_the_report_of_the_installed_deepspeed_is_read():
        told = json.loads(doctor("--only", "machine", "--json", "--validate", "--", sys.executable, "train.py").stdout)
        assert "12.1-1" not in {one["id"] for one in told["findings"]} and not [note for note in told["not_checked"] if note.startswith("ds_report")]
