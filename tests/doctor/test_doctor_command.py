"""The command itself: what it says to wrong words, what it measures, how it prints."""
import base64
import json
import os
import resource
import socket
import subprocess
import sys
import time

import pytest

from doctor_cli import BUILD, doctor, findings, make_checkpoint

CONFIG = {"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True}}
MINIMAL = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "ds_config.json"
    path.write_text(json.dumps(CONFIG))
    return path


@pytest.mark.parametrize("arguments, text, says", [
    (["no_such.json"], "", "no_such.json: No such file or directory"),
    (["a.json", "b.json"], "", "more than one config is named: a.json, b.json"),
    (["--only", "config,network"], "", "--only: 'network' is no area; there are config, hostfile, env, machine, checkpoint, model"),
    (["--facts", "-"], "[]", "standard input is no JSON object"),
    (["--facts", "-"], '{"world_sise": 2}', "'world_sise' is no fact; did you mean 'world_size'?"),
    (["--facts", "-"], '{"world_size": "two"}', "'world_size' has a value of the wrong type: type must be number, but is string"),
    (["--facts", "-"], '{"driver": "no"}', "'driver' has a value of the wrong type: type must be boolean, but is string"),
    (["--facts", "-"], '{"jit_locks": [{"path": "/x"}]}', "'jit_locks' has a value of the wrong type: key 'age_s' not found"),
    (["--facts", "-"], '{"trainer": "mine"}', "'trainer': must be plain, hf or unknown"),
    (["--facts", "-"], '{"ds_config": "no_such.json"}', "'ds_config': no_such.json: No such file or directory"),
    (["--facts", "-"], '{"busy_ports": {"many": ""}}', "'busy_ports': 'many' is no port"),
    (["--env-file", "-"], "A=1\nB\n", "standard input: line 2 is no KEY=VALUE"),
    (["--hostfile", "/nonexistent/hosts"], "", "/nonexistent/hosts: No such file or directory"),
    (["--checkpoint", "/nonexistent/c"], "", "/nonexistent/c: No such file or directory"),
    (["--model", "/nonexistent/m"], "", "/nonexistent/m: No such file or directory"),
    (["--frob"], "", "--frob"),
])
def test_a_mistake_gets_one_line_that_helps(arguments, text, says, tmp_path):
    told = doctor(*arguments, text=text, cwd=tmp_path)
    assert (told.returncode, told.stdout) == (2, "")
    assert says in told.stderr and told.stderr.startswith("dshang: ") and told.stderr.count("\n") == 1, told.stderr


def test_only_limits_what_is_looked_at(config, tmp_path):
    config.write_text(json.dumps(dict(CONFIG, gradient_cliping=1)))
    (tmp_path / "env").write_text("NCCL_TIMEOUT=1\n")
    both = [config, "--facts", "-", "--env-file", tmp_path / "env"]
    assert [one["id"] for one in findings(*both, text="{}")] == ["X-21", "X-15"]
    assert [one["id"] for one in findings(*both, "--only", "env", text="{}")] == ["X-15"]
    assert [one["id"] for one in findings(*both, "--only", "config,machine", text="{}")] == ["X-21"]


@pytest.mark.parametrize("key, near", [
    ("gradient_cliping", "gradient_clipping"), ("train_batchsize", "train_batch_size"), ("zero_optimisation", "zero_optimization"),
    ("fp_16", "fp16"), ("Wall_Clock_Breakdown", "wall_clock_breakdown"), ("stage3_max_live_parameters", "it belongs into 'zero_optimization'"),
])
def test_an_unknown_key_is_told_with_the_nearest(config, key, near):
    config.write_text(json.dumps({**CONFIG, key: 1}))
    found = findings(config, "--facts", "-", text="{}")
    assert [one["id"] for one in found] == ["X-21"] and near in found[0]["summary"], found


def test_a_key_of_the_users_own_is_a_remark(config):
    config.write_text(json.dumps({**CONFIG, "my_dataset": "x"}))
    assert [(one["id"], one["severity"]) for one in findings(config, "--facts", "-", text="{}")] == [("X-21", "info")]


@pytest.mark.parametrize("text, error", [
    ('{\n  "train_micro_batch_size_per_gpu": 1,\n', "line 3, column 1: an object is not closed by }"),
    ('{"a" 1}', "line 1, column 6: ':' is missing after the key a"),
    ("{'a': True}", "it looks like a printed Python dict"),
    ('{"a": "x\n"}', "a text is not closed before the line ends"),
    ("[1]", "the config is no object in braces"),
    ("", "neither train_batch_size nor train_micro_batch_size_per_gpu is given"),
])
def test_a_broken_config_is_told_with_its_place(config, text, error):
    config.write_text(text)
    found = findings(config, "--facts", "-", text="{}")
    assert len(found) == 1 and error in found[0]["summary"], found


@pytest.mark.parametrize("text, error", [
    ('{"fp16": {"enabled": True}, "train_batch_size": 8}', "line 1, column 22: True is Python's word; write true"),
    ('{\n "fp16": {"enabled": False},\n "train_batch_size": 8}\n', "line 2, column 22: False is Python's word; write false"),
    ('{\n "train_micro_batch_size_per_gpu": 1 "gradient_clipping": 1.0}', "line 2, column 36: a comma is missing after 1"),
    ('{\n note: he said "hi", {or} not\n "betas": [1, 2\n}', "line 4, column 1: a value is missing before }"),
    ('{"train_micro_batch_size_per_gpu": one}', "line 1, column 36: a text without quotes"),
])
def test_a_word_that_swallows_its_line_is_named(config, text, error):
    config.write_text(text)
    found = findings(config, "--facts", "-", text="{}")
    assert [one["id"] for one in found] == ["X-38"] and f"cannot be read: {error}" in found[0]["summary"], found


@pytest.mark.parametrize("text, why", [
    ('{"train_micro_batch_size_per_gpu": 1 // one\n}', "line 1, column 38: a comment"),
    ('{"train_micro_batch_size_per_gpu": 1,\n}', "line 1, column 37: a comma before }"),
    ('{"train_micro_batch_size_per_gpu": 1\n "steps_per_print": 5}', "line 2, column 2: a comma is missing before this"),
    ("{'train_micro_batch_size_per_gpu': 1}", "line 1, column 2: a text in single quotes"),
    ("{train_micro_batch_size_per_gpu: 1}", "line 1, column 2: a key without quotes"),
    ('train_micro_batch_size_per_gpu: 1', "line 1, column 1: braces are missing"),
    ('{"train_micro_batch_size_per_gpu": 1, "betas": [1, 2,]}', "line 1, column 53: a comma before ]"),
    ('{"train_micro_batch_size_per_gpu": 1, "steps_per_print": 5}', ""),
])
def test_where_hugging_face_stops_is_named(config, text, why):
    config.write_text(text)
    said = [one["summary"] for one in findings(config, "--facts", "-", text='{"trainer": "hf"}') if one["id"] == "X-38"]
    assert said == ([f"no strict JSON ({why}): DeepSpeed would read it, Hugging Face does not"] if why else [])
    assert "X-38" not in [one["id"] for one in findings(config, "--facts", "-", text="{}")]


@pytest.mark.parametrize("text", [
    "train_micro_batch_size_per_gpu: 1\nbf16: {enabled: true}\n",
    "// eight\n{train_micro_batch_size_per_gpu: 1 /* one */\n 'bf16': {enabled: true,},}",
    '\ufeff{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "_a": "\\u00e9\\n\\ud83d\\ude00"}',
    "{_a: '''two\nlines'''\n_b: a text, without quotes\ntrain_micro_batch_size_per_gpu: 1, bf16: {enabled: true}}",
])
def test_what_deepspeed_reads_is_read(config, text):
    config.write_text(text)
    assert findings(config, "--facts", "-", text="{}") == []


def test_the_launch_command_tells_ranks_config_and_script(tmp_path):
    (tmp_path / "ds.json").write_text(json.dumps({"train_batch_size": 6, "gradient_clipping": "auto"}))
    (tmp_path / "train.py").write_text("import deepspeed\nengine, *_ = deepspeed.initialize(model=m, config='ds.json')\n")
    launch = ["--only", "config", "--", "deepspeed", "--num_gpus", "4", "train.py", "--deepspeed", "ds.json", "--steps", "3"]
    found = json.loads(doctor("--json", *launch, cwd=tmp_path).stdout)["findings"]
    assert [(one["id"], one["severity"]) for one in found] == [("12.3-1", "error"), ("X-05", "error")]
    (tmp_path / "train.py").write_text("from transformers import Trainer\n")
    launch[5] = "2"
    assert json.loads(doctor("--json", *launch, cwd=tmp_path).stdout)["findings"] == []


YAML = "compute_environment: LOCAL_MACHINE\ndeepspeed_config:\n  deepspeed_config_file: ds.json  # ours\n  zero3_init_flag: false\nnum_machines: 1\nnum_processes: 4\n"
ACCELERATE = ["accelerate", "launch"]


@pytest.mark.parametrize("launch, batch", [
    ([*ACCELERATE, "--num_processes", "4", "--deepspeed_config_file", "ds.json", "train.py"], 4), ([*ACCELERATE, "--config_file", "acc.yaml", "train.py"], 4),
    ([*ACCELERATE, "--config_file", "acc.yaml", "--num_processes", "3", "train.py"], 3), (["srun", "-N", "2", "--ntasks-per-node", "4", "python", "train.py", "--deepspeed", "ds.json"], 8),
    (["srun", "-N2", "--label", "-n6", "python", "-u", "train.py", "--deepspeed", "ds.json"], 6),
    (["srun", "-N", "2", "--ntasks-per-node=1", "torchrun", "--nnodes", "2", "--nproc_per_node", "4", "train.py", "--deepspeed", "ds.json"], 8),
    (["mpirun", "--allow-run-as-root", "--mca", "btl", "^openib", "-np", "4", "-x", "NCCL_DEBUG", "python", "train.py", "--deepspeed", "ds.json"], 4),
    (["mpiexec", "-n", "4", "python3", "train.py", "--deepspeed=ds.json"], 4),
])
def test_launchers_tell_ranks_and_config(tmp_path, launch, batch):
    (tmp_path / "acc.yaml").write_text(YAML)
    for size, ids in ((batch, []), (batch * 2 + 1, ["12.3-1"])):
        (tmp_path / "ds.json").write_text(json.dumps({"train_batch_size": size}))
        told = json.loads(doctor("--json", "--only", "config", "--", *launch, cwd=tmp_path, env=MINIMAL).stdout)
        assert [one["id"] for one in told["findings"]] == ids
        assert not [one for one in told["not_checked"] if "configuration" in one or "ranks" in one]


@pytest.mark.parametrize("option, differs", [
    ("--per_device_train_batch_size 4", True), ("--per_device_train_batch_size=2", False), ("--learning_rate 1e-3", True), ("--learning_rate 2e-5", False),
    ("--fp16", True), ("--bf16", False), ("--bf16 False", True), ("--learning_rates 1e-3", False), ("--learning_rate auto", False),
])
def test_arguments_of_the_trainer_are_compared(tmp_path, option, differs):
    (tmp_path / "ds.json").write_text(json.dumps({"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": True}, "fp16": {"enabled": False},
                                                  "optimizer": {"type": "AdamW", "params": {"lr": 2e-5}}}))
    command = ["--json", "--only", "config", "--", "deepspeed", "--num_gpus", "8", "train.py", *option.split(), "--deepspeed", "ds.json"]
    script = "from transformers import HfArgumentParser, Trainer, TrainingArguments\n"
    for text, wrong in ((script, differs), (script.replace("HfArgumentParser, ", ""), False)):   # there the script's own parser may do anything
        (tmp_path / "train.py").write_text(text)
        found = json.loads(doctor(*command, cwd=tmp_path, env=MINIMAL).stdout)["findings"]
        assert ("X-04" in [one["id"] for one in found]) == wrong, found


@pytest.mark.parametrize("launch, named", [
    (["srun", "bash", "run.sh"], []), (["bash", "launch.sh"], []), (["deepspeed", "--num_gpus", "2", "nothere.py"], ["the script nothere.py: it does not exist here"]),
    ([*ACCELERATE, "--config_file", "no.yaml", "train.py"], []), (["deepspeed", "train.py", "--deepspeed"], []),
])
def test_a_command_without_a_config_is_named(tmp_path, launch, named):
    (tmp_path / "train.py").write_text("")
    notes = json.loads(doctor("--json", "--only", "config", "--", *launch, cwd=tmp_path, env=MINIMAL).stdout)["not_checked"]
    said = [one for one in notes if one.startswith(("the configuration", "the script"))]
    assert said == ["the configuration: the launch command names none; give it before --", *named]


def test_tensor_parallelism_needs_config_and_ranks_only(config):
    config.write_text(json.dumps({**CONFIG, "tensor_parallel": {"autotp_size": 3}}))
    ask = [config, "--only", "config", "--", "torchrun", "--nproc_per_node"]
    assert "X-39" in [one["id"] for one in json.loads(doctor(*ask[:3], "--json", *ask[3:], "8", "train.py").stdout)["findings"]]
    assert "X-39" not in [one["id"] for one in json.loads(doctor(*ask[:3], "--json", *ask[3:], "6", "train.py").stdout)["findings"]]


@pytest.mark.parametrize("config, ids", [({"train_batch_size": 6}, ["12.3-1"]), ({"train_batch_size": 8}, [])])
def test_a_config_in_base64_is_read(config, ids):
    word = base64.urlsafe_b64encode(json.dumps(config).encode()).decode()
    launch = ["--", "deepspeed", "--num_gpus", "4", "train.py", "--deepspeed_config"]
    told = json.loads(doctor("--only", "config", "--json", *launch, word).stdout)
    assert [one["id"] for one in told["findings"]] == ids
    assert [one["id"] for one in json.loads(doctor("--only", "config", "--json", *launch, word[:-3]).stdout)["findings"]] == ["12.3-5"]


def test_a_hostfile_of_something_else_is_told_in_short(tmp_path):
    (tmp_path / "hosts").write_bytes(bytes(range(256)) * 400)
    told = doctor("--hostfile", tmp_path / "hosts", "--only", "hostfile")
    assert told.returncode == 1 and "WILL FAIL [12.9-5]" in told.stdout and len(told.stdout.splitlines()) < 25, told.stdout


def test_the_number_of_ranks_comes_from_the_hostfile(config, tmp_path):
    config.write_text(json.dumps({**CONFIG, "train_batch_size": 12}))
    (tmp_path / "hosts").write_text("a slots=4\nb slots=4\n")
    found = findings(config, "--hostfile", tmp_path / "hosts", "--only", "config,hostfile")
    assert [one["id"] for one in found] == ["12.3-1"] and "= 8" in found[0]["summary"]
    (tmp_path / "hosts").write_text("a slots=4\n")
    assert findings(config, "--hostfile", tmp_path / "hosts", "--only", "config,hostfile") == []


TWO_HOSTS = "worker-1 slots=8\nworker-2 slots=8\n"


@pytest.mark.parametrize("hosts, options, variable, ranks", [
    (TWO_HOSTS, [], None, "16 ranks, 2 nodes"), (TWO_HOSTS, ["--include", "worker-1:0,1"], None, "2 ranks"),
    (TWO_HOSTS, ["--include=worker-1:0,1@worker-2:3"], None, "3 ranks, 2 nodes"), (TWO_HOSTS, ["--exclude", "worker-2"], None, "8 ranks"),
    (TWO_HOSTS, ["--exclude", "worker-2:0,1@worker-1:7"], None, "13 ranks, 2 nodes"), (TWO_HOSTS, ["--num_nodes", "3"], None, "16 ranks, 2 nodes"),
    (TWO_HOSTS, ["--num_nodes", "1", "--num_gpus", "4"], None, "4 ranks"), ("", ["--include", "localhost:0,1,2"], None, "3 ranks"),
    ("", [], "4,5", "2 ranks"), ("", ["--num_gpus", "4"], "4,5", "4 ranks"), (TWO_HOSTS, ["--include", "worker-3:0"], None, None),
    ("", ["--include", "localhost"], None, None),
])
def test_the_launcher_chooses_hosts_and_slots(config, tmp_path, hosts, options, variable, ranks):
    if hosts:
        (tmp_path / "hosts").write_text(hosts)
        options = ["--hostfile", "hosts", *options]
    env = dict(MINIMAL, WORLD_SIZE="64", **({"CUDA_VISIBLE_DEVICES": variable} if variable else {}))  # WORLD_SIZE: a leftover
    told = doctor(config, "--only", "config", "--", "deepspeed", *options, "train.py", cwd=tmp_path, env=env)
    first = " ".join(told.stdout.split("\n\n")[0].split())
    assert told.returncode == 0 and (f", {ranks}" if ranks else "json") in first, told.stdout
    assert ranks is None or ranks.endswith("nodes") == ("nodes" in first)
    assert ("the number of ranks" in told.stdout) == (ranks is None), told.stdout


def test_a_hostfile_that_is_not_there_is_told(tmp_path):
    launch = ["--only", "hostfile", "--", "deepspeed", "--hostfile", "hosts", "train.py"]
    assert [(one["id"], one["severity"]) for one in json.loads(doctor("--json", *launch, cwd=tmp_path, env=MINIMAL).stdout)["findings"]] == [("D-03", "warning")]
    (tmp_path / "hosts").write_text(TWO_HOSTS)
    assert json.loads(doctor("--json", *launch, cwd=tmp_path, env=MINIMAL).stdout)["findings"] == []


@pytest.mark.parametrize("family, address", [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "0.0.0.0")])
def test_a_port_in_use_is_tried(family, address):
    with socket.socket(family) as listening:
        listening.bind((address, 0))
        listening.listen()
        port = listening.getsockname()[1]
        env = dict(MINIMAL, MASTER_PORT=str(port))
        found = findings("--only", "env", env=env)
        assert [one["id"] for one in found] == ["12.3-3"]
        assert f"port {port} is in use here by process {os.getpid()}" in found[0]["summary"]
    assert findings("--only", "env", env=env) == []


def test_an_established_connection_does_not_keep_the_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as client, server.accept()[0]:
            port = client.getsockname()[1]
            listeners = {one["id"] for one in findings("--only", "env", env=dict(MINIMAL, MASTER_PORT=str(server.getsockname()[1])))}
            assert listeners == {"12.3-3"}
    assert findings("--only", "env", env=dict(MINIMAL, MASTER_PORT=str(port))) == []


def test_the_interfaces_of_this_machine_are_known():
    found = findings("--only", "env", env=dict(MINIMAL, MASTER_PORT="0", NCCL_SOCKET_IFNAME="nosuch9"))
    ids = {one["id"]: one for one in found}
    assert set(ids) == {"12.3-3", "12.9-3"} and "lo" in ids["12.9-3"]["summary"]
    lo = findings("--only", "env", env=dict(MINIMAL, NCCL_SOCKET_IFNAME="lo"))
    assert "12.9-3" not in {one["id"] for one in lo}


def test_a_stale_lock_is_found_and_a_fresh_one_is_not(tmp_path):
    lock = tmp_path / "py311_cpu" / "cpu_adam" / "lock"
    lock.parent.mkdir(parents=True)
    lock.write_text("")
    env = dict(MINIMAL, TORCH_EXTENSIONS_DIR=str(tmp_path))
    assert "X-11" not in {one["id"] for one in findings("--only", "machine", env=env)}
    os.utime(lock, (time.time() - 7200,) * 2)
    found = {one["id"]: one for one in findings("--only", "machine", env=env)}
    building = os.popen("ps -e -o comm=").read().split()
    if {"ninja", "nvcc", "cc1plus", "cicc", "ptxas"} & set(building):
        assert "X-11" not in found  # somebody compiles on this machine
    else:
        assert found["X-11"]["fix"] == [f"rm {lock}"]


FAKE_SSH = """#!/bin/sh
# ssh of a test: OPTIONS HOST COMMAND; runs the command here, in another folder for host b.
while [ "$1" = -o ]; do shift 2; done
case $1 in
  closed) echo "closed: Permission denied (publickey)." >&2; exit 255 ;;
  b) sh -c "cd() { command cd \"$OTHER\"; }; $2" ;;
  small) sh -c "ulimit -n 256; $2" ;;
  *) sh -c "$2" ;;
esac
"""


def test_hosts_are_reached_and_compared_when_asked(tmp_path):
    here, other, tools = (tmp_path / name for name in ("here", "other", "tools"))
    for folder in (here, other, tools):
        folder.mkdir()
    (tools / "ssh").write_text(FAKE_SSH)
    (tools / "ssh").chmod(0o755)
    (here / "ds_config.json").write_text(json.dumps(CONFIG))
    (other / "ds_config.json").write_text(json.dumps(CONFIG))
    env = dict(MINIMAL, PATH=f"{tools}:/usr/bin:/bin", OTHER=str(other))
    ask = ["ds_config.json", "--hostfile", "hosts", "--only", "hostfile", "--ssh"]
    (here / "hosts").write_text("a slots=1\nb slots=1\n")
    assert findings(*ask, cwd=here, env=env) == []
    (other / "ds_config.json").write_text(json.dumps(dict(CONFIG, gradient_clipping=1)))
    assert [(one["id"], one["where"]) for one in findings(*ask, cwd=here, env=env)] == [("12.9-2", "b")]
    assert findings(*ask[:-1], cwd=here, env=env) == []
    (here / "hosts").write_text("a slots=1\nclosed slots=1\n")
    found = findings(*ask, cwd=here, env=env)
    assert [one["id"] for one in found] == ["12.9-1"] and "Permission denied (publickey)" in found[0]["summary"]


    (here / "hosts").write_text("a slots=1\nb slots=1\n")
    (other / "ds_config.json").unlink()
    found = findings("ds_config.json", "--hostfile", "hosts", "--only", "config,hostfile", "--ssh", cwd=here, env=env)
    assert [one["id"] for one in found] == ["12.3-5"] and "does not exist on b" in found[0]["summary"]
    (here / "hosts").write_text("a slots=2\nsmall slots=2\n")
    found = {one["id"]: one for one in findings("--hostfile", "hosts", "--only", "hostfile,machine", "--ssh", cwd=here, env=env)}
    assert "open_files is 256 on small" in found["12.9-2"]["summary"]
    assert "on small: only 256 files may be open" in found["X-40"]["summary"] and "ulimit -n of small" in found["X-40"]["where"]


def test_nodes_that_nobody_asked_are_named(tmp_path):
    (tmp_path / "hosts").write_text("a slots=1\nb slots=1\n")

    def notes(*arguments):
        told = json.loads(doctor("--only", "hostfile", "--json", *arguments, cwd=tmp_path, env=MINIMAL).stdout)
        return [note for note in told["not_checked"] if "--ssh" in note]
    assert notes("--hostfile", "hosts") == ["the nodes of hosts: --ssh looks at each"]
    assert notes("--ssh") == ["the other nodes: --ssh needs a hostfile"]
    (tmp_path / "hosts").write_text("a slots=1\n")
    assert notes("--hostfile", "hosts") == []


def test_nvme_on_memory_is_seen(config):
    config.write_text(json.dumps({**CONFIG, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}, "zero_optimization": {
        "stage": 3, "stage3_gather_16bit_weights_on_model_save": True, "offload_optimizer": {"device": "nvme", "nvme_path": "/dev/shm/x"}}}))
    assert [one["id"] for one in findings(config, "--only", "config")] == ["12.6-5"]


def test_versions_come_from_the_interpreter_on_the_path(tmp_path):
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    (tmp_path / "bin").mkdir(parents=True)
    for name in ("deepspeed-0.16.9", "torch-2.5.1", "transformers-4.44.0"):
        (packages / f"{name}.dist-info").mkdir(parents=True)
    python = tmp_path / "bin" / "python"
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    (tmp_path / "c.json").write_text(json.dumps({**CONFIG, "elasticity": {"enabled": False}}))
    launch = [tmp_path / "c.json", "--only", "config", "--", python, "train.py"]
    told = doctor(*launch)
    assert told.returncode == 0 and "DeepSpeed 0.16.9, torch 2.5.1" in " ".join(told.stdout.split())
    (packages / "deepspeed-0.16.9.dist-info").rename(packages / "deepspeed-0.19.8.dist-info")
    assert doctor(*launch).returncode == 1


def test_the_text_names_cause_and_fix_most_important_first(config):
    config.write_text(json.dumps({"train_batch_size": 12, "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True},
                                  "wall_clock_breakdown": True}))
    told = doctor(config, "--facts", "-", text="{}")
    lines = told.stdout.splitlines()
    assert told.returncode == 1 and max(map(len, lines)) <= 130
    heads = [line.split("]")[0] + "]" for line in lines if line[:1].isupper()]
    assert heads == ["WILL FAIL [12.3-1]", "ADVICE [12.1-4]"]
    assert any(line.startswith("  why:   ") for line in lines) and any(line.startswith("  fix:   Give train_micro") for line in lines)
    assert lines[-1] == "1 thing is wrong; 1 remark"


def test_what_a_config_says_cannot_steer_a_terminal(config):
    config.write_text(json.dumps({"train_micro_batch_size_per_gpu": 1, "bell\x07\x1b[2J\x9b31m": 1}))
    said = doctor(config, "--facts", "-", text="{}").stdout
    assert "bell" in said and not [c for c in said if c != "\n" and (ord(c) < 32 or 0x7f <= ord(c) < 0xa0)]


def test_what_is_wrong_with_the_words_cannot_steer_a_terminal(tmp_path):
    for arguments, text in ((["\x1b[2Jno.json"], ""), (["--facts", "-"], json.dumps({"bell\x07\x1b[2J": 1}))):
        said = doctor(*arguments, text=text, cwd=tmp_path)
        assert said.returncode == 2 and "[2J" in said.stderr
        assert not [c for c in said.stderr if c != "\n" and (ord(c) < 32 or 0x7f <= ord(c) < 0xa0)]


def test_a_hostfile_with_carriage_returns_is_read_as_the_launcher_reads_it(tmp_path):
    (tmp_path / "hosts").write_bytes(b"a slots=4\r\n\r\n# spare\r\nb slots=4\r\n")
    assert findings("--hostfile", tmp_path / "hosts", "--only", "hostfile") == []


def test_a_config_that_is_not_looked_at_is_named(config, tmp_path):
    (tmp_path / "other.json").write_text(json.dumps(dict(CONFIG, train_batch_size=3)))

    def not_checked(named):
        told = doctor(config, "--json", "--only", "config", "--", "deepspeed", "train.py", "--deepspeed_config", named, cwd=tmp_path)
        return json.loads(told.stdout)["not_checked"]
    assert [one for one in not_checked("other.json") if one.startswith("other.json, the config of the launch command: ")]
    assert not [one for one in not_checked("ds_config.json") if "the config of the launch command" in one]   # the same file


def test_a_place_that_does_not_exist_is_told_so(config, tmp_path):
    path = "/dev/shm/no-such-place/swap"
    config.write_text(json.dumps({**CONFIG, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}, "zero_optimization": {
        "stage": 3, "stage3_gather_16bit_weights_on_model_save": True, "offload_optimizer": {"device": "nvme", "nvme_path": path}}}))
    found = findings(config, "--only", "config")
    assert [one["id"] for one in found] == ["12.6-5"]
    assert f"{path} does not exist; /dev/shm, where it would be made, is memory" in found[0]["summary"]


def processor_seconds(*arguments, **how):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = findings(*arguments, **how)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("place", ["", "zero_optimization"])
def test_very_many_unknown_keys_are_counted(config, place):
    keys = {"my_own_setting_number_%d" % n: n for n in range(100000)}
    keys["gradient_cliping" if not place else "overlap_com"] = 1
    config.write_text(json.dumps(dict(CONFIG, **({place: keys} if place else keys))))
    found, seconds = processor_seconds(config, "--facts", "-", text="{}")
    assert [one["id"] for one in found] == ["X-22" if place else "X-21"] and seconds < 4
    assert "and 99981 more like these" in found[0]["summary"] and len(found[0]["summary"]) < 10000
    assert place or "did you mean 'gradient_clipping'?" in found[0]["summary"]     # what is a mistake stands before what may be none


def test_a_key_without_end_is_shortened(config):
    config.write_text(json.dumps({**CONFIG, "k" * 1000000: 1, "zero_optimization": {"z" * 1000000: 1}}))
    found, seconds = processor_seconds(config, "--facts", "-", text="{}")
    assert sorted(one["id"] for one in found) == ["X-21", "X-22"] and seconds < 2
    assert all(len(one["summary"]) + len(one["where"]) < 1000 for one in found)


def test_a_huge_latest_is_not_read_whole(tmp_path):
    folder = make_checkpoint(tmp_path / "checkpoint", ["latest=global_step7", "global_step7/mp_rank_00_model_states.pt"])
    os.truncate(folder / "latest", 300 << 20)
    told = subprocess.run([BUILD / "dshang", "doctor", "--checkpoint", folder, "--only", "checkpoint", "--json"], capture_output=True, timeout=60,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (200 << 20, 200 << 20)))
    assert told.returncode in (0, 1) and json.loads(told.stdout)["schema"] == 1, told.stderr


def test_a_healthy_config_is_told_so(config):
    told = doctor(config, "--facts", "-", text="{}")
    assert told.returncode == 0 and told.stdout.splitlines()[-1] == "nothing wrong found"


def test_the_table_of_rules_is_complete():
    rules = json.loads(doctor("--rules", "--json").stdout)["rules"]
    assert len(rules) >= 60 and len({rule["id"] for rule in rules}) == len(rules)
    assert all(value for rule in rules for value in rule.values())
    text = doctor("--rules").stdout
    assert all(f"{rule['id']}  {rule['severity']}, {rule['area']}" in text for rule in rules)
    assert text.endswith(f"{len(rules)} rules\n")


def test_it_looks_at_this_machine_within_two_seconds(config):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = doctor(config, "--json", "--", sys.executable, "train.py", env=dict(MINIMAL))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert told.returncode in (0, 1) and json.loads(told.stdout)["schema"] == 1
    # Of the processor: what else runs on the machine is not counted.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2


def test_keys_that_are_auto_are_listed_once(config):
    config.write_text(json.dumps({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "gradient_clipping": "auto", "bf16": {"enabled": "auto"}}))
    found, = findings(config, "--facts", "-", text='{"trainer": "unknown"}')
    assert found["summary"] == ("if your script calls deepspeed.initialize itself: train_batch_size, train_micro_batch_size_per_gpu, gradient_clipping are "
                                '"auto", which plain DeepSpeed takes for a text; bf16.enabled is "auto", which plain DeepSpeed takes for off: the model trains in fp32')


def test_one_place_for_both_offloads_is_told_once(config):
    offload = {"device": "nvme", "nvme_path": "/dev/shm/x"}
    config.write_text(json.dumps({**CONFIG, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}, "zero_optimization": {
        "stage": 3, "stage3_gather_16bit_weights_on_model_save": True, "offload_optimizer": offload, "offload_param": {**offload, "max_in_cpu": 1}}}))
    found, = findings(config, "--only", "config")
    assert found["id"] == "12.6-5" and found["summary"].count("/dev/shm/x") == 1 and found["where"].count("nvme_path") == 2


def test_a_key_of_the_top_level_in_a_section_is_sent_there(config):
    config.write_text(json.dumps({**CONFIG, "zero_optimization": {"stage": 2, "gradient_clipping": 1.0}}))
    found = {one["id"]: one["summary"] for one in findings(config, "--facts", "-", text="{}")}
    assert "it belongs to the top level" in found["X-22"]
