"""Files that a command line names, of every command that reads one: what is none, what has no end, and what is one all the same."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import time

import pytest

from doctor_cli import BUILD, doctor, findings

CONFIG = {"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True}}
ENV = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
# How a command names a file, and what may stand in it.
NAMED = {
    "doctor CONFIG": (["doctor", "--json", "--only", "config", "FILE"], json.dumps(CONFIG)),
    "doctor --hostfile": (["doctor", "--json", "--only", "hostfile", "--hostfile", "FILE"], "a slots=4\nb slots=4\n"),
    "doctor --checkpoint": (["doctor", "--json", "--only", "checkpoint", "--checkpoint", "FILE"], "latest=global_step1\nglobal_step1/mp_rank_00_model_states.pt\n"),
    "doctor --model": (["doctor", "--json", "--only", "model", "--model", "FILE"], '{"hidden_size": 64}'),
    "doctor --facts": (["doctor", "--json", "--facts", "FILE"], '{"world_size": 2}'),
    "doctor --env-file": (["doctor", "--json", "--only", "env", "--env-file", "FILE"], "NCCL_TIMEOUT=1\nMASTER_PORT=0\n"),
    "doctor -- deepspeed": (["doctor", "--json", "--only", "config", "--", "deepspeed", "train.py", "--deepspeed_config", "FILE"], json.dumps(CONFIG)),
    "doctor -- --hostfile": (["doctor", "--json", "--only", "hostfile", "--", "deepspeed", "--hostfile", "FILE", "train.py"], "a slots=4\n"),
    "explain": (["explain", "--json", "FILE"], "step 1\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"),
    "issue --config": (["issue", "--output", "bug", "--config", "FILE"], json.dumps(CONFIG)),
    "issue --log": (["issue", "--output", "bug", "--log", "FILE"], 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nKeyError: 3\n'),
}
ISSUES = [name for name in NAMED if name.startswith("issue")]
READERS = [name for name in NAMED if name not in ISSUES]
TAKES_FOLDERS = ("doctor --checkpoint", "doctor --model", "doctor -- deepspeed", "doctor -- --hostfile")


def told(name, path, cwd, through=(), **how):
    command = [str(path) if word == "FILE" else word for word in NAMED[name][0]]
    return subprocess.run([*through, BUILD / "dshang", *command], cwd=cwd, env=ENV, capture_output=True, text=True, timeout=60,
                          **{"stdin": subprocess.DEVNULL, **how})


def refused(said):
    """The one line."""
    assert (said.returncode, said.stdout) == (2, ""), (said.returncode, said.stdout, said.stderr)
    assert said.stderr.startswith("dshang: ") and said.stderr.count("\n") == 1, said.stderr
    return said.stderr[len("dshang: "):-1]


def pipe(path):
    os.mkfifo(path)


def closed_socket(path):
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as server:
        server.bind(str(path))


DEVICES = [pathlib.Path(name) for name in ("/dev/zero", "/dev/full", "/dev/urandom", "/dev/kmsg") if os.path.exists(name)]


@pytest.mark.parametrize("name", NAMED)
def test_what_is_no_file_gets_one_line(name, tmp_path):
    """Neither a writer nor an end is waited for."""
    os.chdir(tmp_path)  # the name of a socket is short
    pipe(tmp_path / "pipe")
    closed_socket("socket")
    (tmp_path / "loop").symlink_to("loop")
    for what, says in (("pipe", "it is a pipe that nothing writes to"), ("socket", "it is a socket"), *((one, "it is a device") for one in DEVICES)):
        assert refused(told(name, what, tmp_path)) == f"{what}: is not a regular file: {says}"
    assert refused(told(name, "loop", tmp_path)) == "loop: Too many levels of symbolic links"
    assert not list(tmp_path.glob("bug*"))


@pytest.mark.parametrize("name", [name for name in NAMED if name not in TAKES_FOLDERS])
def test_a_folder_is_no_file(name, tmp_path):
    (tmp_path / "folder").mkdir()
    assert refused(told(name, "folder", tmp_path)) == "folder: is a directory; name a file in it"


@pytest.mark.parametrize("words", [
    ["doctor", ""], ["doctor", "--hostfile", ""], ["doctor", "--checkpoint", ""], ["doctor", "--model", ""], ["doctor", "--facts", ""],
    ["doctor", "--env-file", ""], ["doctor", "--only", ""], ["explain", ""], ["explain", "log", ""], ["issue", ""], ["issue", "--config", ""],
    ["issue", "--log", ""], ["issue", "--output", ""], ["report", ""], ["report", ".", "--perfetto", ""], ["report", ".", "--flight-recorder", ""],
    ["top", ""], ["run", "--hostfile", "", "--", "true"],
], ids=" ".join)
def test_an_empty_word_is_not_taken_for_one_that_was_left_out(words, tmp_path):
    (tmp_path / "log").write_text("step 1\n")
    said = subprocess.run([BUILD / "dshang", *words], cwd=tmp_path, env=ENV, capture_output=True, text=True, timeout=60)
    assert "an empty word names nothing" in refused(said)


def test_empty_words_of_a_launch_command_are_its_own(tmp_path):
    (tmp_path / "train.py").write_text("")
    words = ["--", "deepspeed", "--num_gpus", "2", "train.py", "--run_name", ""]
    assert doctor("--only", "config", *words, cwd=tmp_path, env=ENV).returncode == 0


def same(said, expected):
    """The same answer, but for the file's name."""
    assert (said.returncode, said.stderr) == (expected.returncode, "")
    shown = re.sub(r"/dev/fd/[0-9]+|/dev/stdin|standard input|link|pipe", "file", said.stdout)
    assert json.loads(shown) == json.loads(expected.stdout)


@pytest.fixture
def given(request, tmp_path):
    """A file of a kind, and what is said of it."""
    (tmp_path / "train.py").write_text("")
    (tmp_path / "file").write_text(NAMED[request.param][1])
    expected = told(request.param, "file", tmp_path)
    assert expected.returncode in (0, 1) and expected.stderr == "" and json.loads(expected.stdout)
    return request.param, expected


@pytest.mark.parametrize("given", READERS, indirect=True)
def test_what_can_be_read_is_read_in_any_way(given, tmp_path):
    name, expected = given
    (tmp_path / "link").symlink_to("file")
    same(told(name, "link", tmp_path), expected)
    command = " ".join([f"'{BUILD}/dshang'", *NAMED[name][0]])
    ways = [("cat file | COMMAND", "/dev/stdin"), ("COMMAND < file", "/dev/stdin"), ("COMMAND", "<(cat file)")]
    ways += [("cat file | COMMAND", "-"), ("COMMAND < file", "-")] if "--" not in NAMED[name][0] else []
    for way, path in ways:
        line = way.replace("COMMAND", command.replace("FILE", path))
        same(subprocess.run(["bash", "-c", line], cwd=tmp_path, env=ENV, capture_output=True, text=True, timeout=60), expected)


@pytest.mark.parametrize("given", READERS, indirect=True)
def test_a_pipe_with_a_name_and_a_writer_is_read(given, tmp_path):
    name, expected = given
    pipe(tmp_path / "pipe")
    writer = None
    until = time.monotonic() + 60
    try:
        while True:  # the writer waits in open(); where it comes too late, once more
            if writer is None or writer.poll() is not None:
                writer = subprocess.Popen(["sh", "-c", "cat file > pipe"], cwd=tmp_path, stderr=subprocess.DEVNULL)
            said = told(name, "pipe", tmp_path)
            if said.returncode != 2 or time.monotonic() > until:
                break
            assert refused(said) == "pipe: is not a regular file: it is a pipe that nothing writes to"
        same(said, expected)
        assert writer.wait(timeout=60) == 0
    finally:
        writer.kill()
        writer.wait()


@pytest.mark.parametrize("name", NAMED)
def test_the_empty_device_is_an_empty_file(name, tmp_path):
    """As in --env-file /dev/null, which leaves the environment out."""
    (tmp_path / "empty").write_text("")
    said, expected = told(name, "/dev/null", tmp_path), None
    shutil.rmtree(tmp_path / "bug", ignore_errors=True)
    for made in tmp_path.glob("bug*"):
        made.unlink()
    expected = told(name, "empty", tmp_path)
    assert said.returncode == expected.returncode and said.stdout.replace("/dev/null", "empty") == expected.stdout
    assert said.stderr.replace("/dev/null", "empty") == expected.stderr


@pytest.mark.parametrize("option, content, told_is", [
    ("--config", json.dumps({**CONFIG, "gradient_clipping": 0.125}), "0.125"),
    ("--log", 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nKeyError: "seven"\n', 'KeyError: "seven"'),
])
def test_what_a_pipe_holds_is_in_the_bundle(option, content, told_is, tmp_path):
    """It can be read once only."""
    (tmp_path / "file").write_text(content)
    for way, name in (("<(cat file)", "first"), ("file", "second")):
        line = f"'{BUILD}/dshang' issue --output {name} {option} {way}"
        said = subprocess.run(["bash", "-c", line], cwd=tmp_path, env=ENV, capture_output=True, text=True, timeout=60)
        assert told_is in (tmp_path / f"{name}.md").read_text(), said


# Root may look at everything; without these capabilities it is a user like others.
ORDINARY = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


@pytest.mark.parametrize("name", NAMED)
def test_what_may_not_be_read_is_not_told_as_missing(name, tmp_path):
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "file", tmp_path / "folder" / "file"):
        path.write_text(NAMED[name][1])
    (tmp_path / "file").chmod(0)
    (tmp_path / "folder").chmod(0)
    try:
        assert refused(told(name, "file", tmp_path, ORDINARY)) == "file: Permission denied"
        assert refused(told(name, "folder/file", tmp_path, ORDINARY)) == "folder/file: Permission denied"
    finally:
        (tmp_path / "folder").chmod(0o700)


@pytest.mark.parametrize("name", READERS[:6])
def test_a_text_that_is_too_long_is_refused(name, tmp_path):
    with open(tmp_path / "file", "wb") as file:
        file.write(NAMED[name][1].encode())
        file.truncate((16 << 20) + 1)
    assert refused(told(name, "file", tmp_path)) == "file: is longer than 16 MiB, and no more is read"


@pytest.mark.parametrize("encoding, called", [("utf-16", "UTF-16"), ("utf-16-le", "UTF-16LE"), ("utf-16-be", "UTF-16BE"), ("utf-32", "UTF-32")])
@pytest.mark.parametrize("name", READERS[1:6])
def test_a_text_of_wide_letters_is_told(name, encoding, called, tmp_path):
    (tmp_path / "file").write_bytes(NAMED[name][1].encode(encoding))
    assert refused(told(name, "file", tmp_path)) == f"file: it looks like {called[:6]}: iconv -f {called} -t UTF-8 makes text of it"


def nested(depth, begin='{"a":', middle="1", end="}"):
    return begin * depth + middle + end * depth


@pytest.mark.parametrize("depth", [401, 60_000, 300_000])
@pytest.mark.parametrize("name, text", [
    ("doctor --facts", "DEEP"), ("doctor --facts", '{"hf": DEEP}'), ("doctor --facts", '{"ds_config": DEEP}'), ("doctor --facts", '{"gpu": [DEEP]}'),
    ("doctor --model", "DEEP"), ("doctor --model", '{"text_config": DEEP}'),
])
def test_facts_and_models_that_are_nested_too_deep_are_refused(name, text, depth, tmp_path):
    for deep in (nested(depth), nested(depth, "[", "", "]")):
        (tmp_path / "file").write_text(text.replace("DEEP", deep))
        assert refused(told(name, "file", tmp_path)) == "file is nested too deep"
    (tmp_path / "file").write_text(text.replace("DEEP", '"' + "{" * depth + '"'))   # in a text they are letters
    assert "nested" not in told(name, "file", tmp_path).stderr


@pytest.mark.parametrize("depth, deep", [(390, False), (401, True), (60_000, True), (300_000, True)])
def test_a_config_that_is_nested_too_deep_is_told(depth, deep, tmp_path):
    for begin, middle, end in (('{"a":', "1", "}"), ("{a: ", "1\n", "}"), ("[", "", "]")):
        (tmp_path / "file").write_text('{"train_batch_size": 8, "_mine": ' + nested(depth, begin, middle, end) + "}")
        found = findings("file", "--facts", "-", text="{}", cwd=tmp_path)
        assert [one["id"] for one in found] == (["X-38"] if deep else [])
        assert not deep or "nested too deep" in found[0]["summary"]


def safetensors(path, header, length=None):
    path.write_bytes(struct.pack("<Q", len(header) if length is None else length) + header)


@pytest.mark.parametrize("depth", [401, 60_000, 300_000])
def test_a_header_that_is_nested_too_deep_is_named(depth, tmp_path):
    for deep in (nested(depth), nested(depth, "[", "", "]")):
        safetensors(tmp_path / "model.safetensors", b'{"w": {"shape": ' + deep.encode() + b"}}")
        said = doctor("--checkpoint", ".", "--only", "checkpoint", "--json", cwd=tmp_path)
        assert said.returncode in (0, 1), said
        assert "./model.safetensors: its header is nested too deep" in json.loads(said.stdout)["not_checked"]


@pytest.mark.parametrize("header, length, says", [
    (b"{", None, "its header is no JSON: line 1, column 2: "), (b"[]", None, "its header is no JSON object"), (b"{}", 1 << 40, "its header cannot be as long as it says"),
    (b"{}", 9, "it ends within its header"), (b'{"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}' + b" " * 8, None, None),
])
def test_a_header_that_cannot_be_read_is_named(header, length, says, tmp_path):
    safetensors(tmp_path / "model.safetensors", header, length)
    (tmp_path / "empty.safetensors").write_bytes(b"")   # of a copy of the tree without contents
    notes = json.loads(doctor("--checkpoint", ".", "--only", "checkpoint", "--json", cwd=tmp_path).stdout)["not_checked"]
    notes = [one for one in notes if "safetensors" in one]
    assert len(notes) == (1 if says else 0) and all(one.startswith(f"./model.safetensors: {says}") for one in notes), notes


def test_a_listing_with_an_endless_line_is_read(tmp_path):
    lines = ["latest=global_step1", "x" * 1_000_000, "./" * 500_000, "total " + "9" * 300_000, "global_step1/mp_rank_00_model_states.pt"]
    (tmp_path / "file").write_text("\n".join(lines))
    assert findings("--checkpoint", "file", "--only", "checkpoint", cwd=tmp_path) == []


@pytest.mark.parametrize("content, line, column, byte", [
    ('{"train_batch_size": 8, "_by": "Jos\xe9"}', 1, 36, "e9"), ('{\n# \xfcber\n"train_batch_size": 8}', 2, 3, "fc"), ('{"train_batch_size": 8}\n\xa0', 2, 1, "a0"),
    ('{"train_batch_size": 8, "_by": "Jos\xc3"}', 1, 36, "c3"),
])
@pytest.mark.parametrize("trainer", ["plain", "hf"])
def test_a_config_that_is_no_utf8_is_told(trainer, content, line, column, byte, tmp_path):
    facts = json.dumps({"trainer": trainer})
    (tmp_path / "c.json").write_bytes(content.encode("latin-1"))
    found = findings("c.json", "--facts", "-", text=facts, cwd=tmp_path)
    assert [(one["id"], one["severity"]) for one in found] == [("X-38", "error")]
    assert f"cannot be read: line {line}, column {column}: the byte 0x{byte} is no UTF-8" in found[0]["summary"]
    (tmp_path / "c.json").write_bytes(json.dumps({"train_batch_size": 8, "_by": "José 語 😀"}, ensure_ascii=False).encode())
    assert findings("c.json", "--facts", "-", text=facts, cwd=tmp_path) == []


@pytest.mark.parametrize("encoding, called", [("utf-16", "UTF-16"), ("utf-16-le", "UTF-16LE"), ("utf-16-be", "UTF-16BE"), ("utf-32", "UTF-32")])
@pytest.mark.parametrize("name", ["doctor CONFIG", "doctor -- deepspeed"])
def test_a_config_of_wide_letters_is_told(name, encoding, called, tmp_path):
    (tmp_path / "file").write_bytes(json.dumps(CONFIG).encode(encoding))
    found = json.loads(told(name, "file", tmp_path).stdout)["findings"]
    assert [one["id"] for one in found] == ["X-38"] and f"iconv -f {called} -t UTF-8 makes a config of it" in found[0]["summary"]


@pytest.mark.parametrize("content", [json.dumps(CONFIG), json.dumps(CONFIG, indent=2), "// ours\n" + json.dumps(CONFIG)])
def test_a_mark_before_a_config_stops_hugging_face_alone(content, tmp_path):
    (tmp_path / "c.json").write_bytes(b"\xef\xbb\xbf" + content.encode())
    for trainer, stops in (("hf", True), ("plain", False), ("unknown", False)):
        found = findings("c.json", "--facts", "-", text=json.dumps({"trainer": trainer}), cwd=tmp_path)
        assert [one["id"] for one in found] == (["X-38"] if stops else [])
        assert not stops or "(line 1, column 1: a byte order mark)" in found[0]["summary"]


def test_a_mark_before_accelerates_file_is_none_of_its_key(tmp_path):
    """YAML takes it off."""
    (tmp_path / "train.py").write_text("")
    (tmp_path / "ds.json").write_text(json.dumps({**CONFIG, "train_batch_size": 7}))
    for mark in (b"", b"\xef\xbb\xbf"):
        (tmp_path / "acc.yaml").write_bytes(mark + b"num_processes: 4\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n")
        launch = ["--only", "config", "--json", "--", "accelerate", "launch", "--config_file", "acc.yaml", "train.py"]
        found = json.loads(doctor(*launch, cwd=tmp_path, env=ENV).stdout)["findings"]
        assert [one["id"] for one in found] == ["12.3-1"], found


@pytest.mark.parametrize("number, read", [("1e400", False), ("-1e400", False), ("2.5E+999", False), ("1" + "0" * 400, False), ("1e300", True), ("1e-400", True), ("5e8", True)])
def test_a_number_that_python_cannot_hold_is_told(number, read, tmp_path):
    """hjson ends with OverflowError, json reads infinity."""
    for end in ("}", ", _b: 2}"):
        (tmp_path / "c.json").write_text('{"train_micro_batch_size_per_gpu": 1,\n "_wait": ' + number + end)
        for trainer, severity in (("plain", "error"), ("hf", "warning"), ("unknown", "warning")):
            found = [one for one in findings("c.json", "--facts", "-", text=json.dumps({"trainer": trainer}), cwd=tmp_path)
                     if "too large" in one["summary"]]
            assert [(one["id"], one["severity"]) for one in found] == ([] if read else [("X-38", severity if end == "}" or trainer != "hf" else "error")])
            assert read or "line 2, column 11: the number " in found[0]["summary"]


@pytest.mark.parametrize("name, bad, says", [
    *((name, value, "must be a whole number from 1 to 10000000, not ") for name in ("world_size", "nodes", "ranks_per_node", "tp_size")
      for value in ("7.5", "5e9", "-1", "0")),
    *((name, value, "has a value of the wrong type: type must be number, but is boolean") for name in
      ("world_size", "nodes", "ranks_per_node", "tp_size", "local_rank", "stage", "gpus", "open_files", "parameters", "shm_bytes") for value in ("true", "false")),
    ("local_rank", "-2", "from -1 to "), ("local_rank", "0.5", "from -1 to "), ("stage", "4", "from 0 to 3, not 4"), ("stage", "2.5", "from 0 to 3, not 2.5"),
    ("gpus", "-1", "from 0 to "), ("gpus", "1e10", "from 0 to "), ("open_files", "0.5", "from 0 to "),
    *((name, "-1", "must not be negative, as -1 is") for name in ("parameters", "shm_bytes", "memory_bytes", "memlock_bytes")),
    ("gpu", '[{"memory_bytes": -5}]', "must not be negative"), ("gpu", '[{"memory_bytes": true}]', "type must be number, but is boolean"), ("gpu", "[3]", "wrong type"),
    ("jit_locks", '[{"path": "/x", "age_s": -1}]', "must not be negative"), ("places", '{"/x": {"free_bytes": -1}}', "must not be negative"),
    ("other_nodes", '[{"name": "b", "slots": -1}]', "from 0 to "), ("other_nodes", '[{"name": "b", "slots": 1.5}]', "from 0 to "),
    ("busy_ports", '{"0": ""}', "'0' is no port"), ("busy_ports", '{"65536": ""}', "'65536' is no port"), ("busy_ports", '{"29500x": ""}', "'29500x' is no port"),
    ("shm_bytes", "1e400", "is no JSON: number overflow"),
])
def test_a_fact_that_cannot_be_is_refused(name, bad, says, tmp_path):
    (tmp_path / "facts").write_text(f'{{"{name}": {bad}}}')
    said = refused(told("doctor --facts", "facts", tmp_path))
    assert said.startswith("facts") and says in said and (name in said or "overflow" in said), said


@pytest.mark.parametrize("facts", [
    {"world_size": 8.0, "nodes": 1, "ranks_per_node": 8, "tp_size": 1, "local_rank": -1, "stage": 3}, {"world_size": 1e4}, {"stage": 0, "local_rank": 0, "gpus": 0},
    {"parameters": 7e9, "shm_bytes": 0, "memory_bytes": 1e12, "memlock_bytes": 1e18, "open_files": 1048576}, {"world_size": None, "gpus": None},
    {"gpu": [{"name": "A100", "memory_bytes": 8.5e10}], "busy_ports": {"65535": "x"}, "other_nodes": [{"name": "b", "slots": 8}], "places": {"/x": {"free_bytes": 0.0}}},
])
def test_a_fact_that_can_be_is_taken(facts):
    assert doctor("--facts", "-", "--only", "config", text=json.dumps(facts)).returncode == 0


@pytest.mark.parametrize("export", ["", "export ", "export\t", "export  ", "  export \t "])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_an_environment_is_read_as_a_shell_writes_it(mark, export, tmp_path):
    (tmp_path / "env").write_text(f"{mark}{export}NCCL_TIMEOUT=1\nexported=2\n{export}MASTER_PORT=0\n")
    found = findings("--facts", "-", "--env-file", "env", "--only", "env", text="{}", cwd=tmp_path)
    assert "X-15" in [one["id"] for one in found] and found[0]["summary"]
    assert not [one for one in found if "export" in one["summary"].replace("exported", "")], found


@pytest.mark.parametrize("slots, ranks", [("1000000000000000000", None), ("1" * 200, None), ("100001", None), ("100000", 100000), ("0008", 8), ("16", 16)])
@pytest.mark.parametrize("launcher", ["deepspeed", "torchrun"])
def test_slots_that_no_host_has_are_told(launcher, slots, ranks, tmp_path):
    (tmp_path / "train.py").write_text("")
    (tmp_path / "hosts").write_text(f"worker-1 slots={slots}\n")
    (tmp_path / "c.json").write_text(json.dumps(CONFIG))
    said = doctor("c.json", "--only", "hostfile,config", "--hostfile", "hosts", "--", launcher, "train.py", cwd=tmp_path, env=ENV)
    assert ("worker-1 has more than 100000 slots" in " ".join(said.stdout.split())) == (ranks is None), said.stdout
    first = said.stdout.split("\n\n")[0]
    assert (f", {ranks} ranks" in first) if ranks else "rank" not in first
    assert ("the number of ranks: hosts does not tell it" in said.stdout) == (ranks is None)


def test_a_hostfile_that_is_no_utf8_is_told(tmp_path):
    (tmp_path / "hosts").write_bytes("worker-1 slots=8\n# \xfcber Nacht\nworker-2 slots=8 # \xe4\n".encode("latin-1"))
    found = findings("--hostfile", "hosts", "--only", "hostfile", cwd=tmp_path)
    assert [(one["id"], one["where"]) for one in found] == [("12.9-5", "hosts:2")] and "no UTF-8" in found[0]["summary"]
    (tmp_path / "hosts").write_text("worker-1 slots=8\n# über Nacht" + "é" * 5000 + "\n")
    assert findings("--hostfile", "hosts", "--only", "hostfile", cwd=tmp_path) == []


SHARD = "global_step7/mp_rank_00_model_states.pt"


@pytest.mark.parametrize("closed, mode, named", [
    ("global_step7", 0, "./global_step7: Permission denied"), ("global_step7", 0o600, "./global_step7: Permission denied"),
    ("global_step7", 0o300, "./global_step7: Permission denied"), ("latest", 0, "latest: Permission denied"),
    ("checkpoint-5", 0, "./checkpoint-5: Permission denied"),
])
def test_what_of_a_checkpoint_may_not_be_read_is_not_told_as_missing(closed, mode, named, tmp_path):
    (tmp_path / closed).parent.mkdir(exist_ok=True)
    tree = ["checkpoint-5/latest", "checkpoint-5/" + SHARD] if closed == "checkpoint-5" else ["latest", SHARD]
    for name in tree:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("global_step7" if name.endswith("latest") else "")
    ask = [*ORDINARY, BUILD / "dshang", "doctor", "--json", "--only", "checkpoint", "--checkpoint", "."]

    def report():
        return json.loads(subprocess.run(ask, cwd=tmp_path, env=ENV, capture_output=True, text=True, timeout=60).stdout)
    before = report()
    (tmp_path / closed).chmod(mode)
    try:
        after = report()
    finally:
        (tmp_path / closed).chmod(0o700)
    assert after["findings"] == [] and [one for one in after["not_checked"] if one.endswith(named)], after
    assert not [one for one in before["not_checked"] if "denied" in one]


def test_what_is_missing_from_a_checkpoint_is_still_told(tmp_path):
    (tmp_path / "latest").write_text("global_step7")
    (tmp_path / "global_step6").mkdir()
    (tmp_path / "global_step6").chmod(0)
    ask = [*ORDINARY, BUILD / "dshang", "doctor", "--json", "--only", "checkpoint", "--checkpoint", "."]
    said = json.loads(subprocess.run(ask, cwd=tmp_path, env=ENV, capture_output=True, text=True, timeout=60).stdout)
    (tmp_path / "global_step6").chmod(0o700)
    assert [one["summary"] for one in said["findings"]] == ["latest names global_step7, which is not there"]


@pytest.mark.parametrize("name", ["train.py", "acc.yaml"])
def test_a_file_of_the_launch_command_that_may_not_be_read_is_named(name, tmp_path):
    for one in ("train.py", "acc.yaml"):
        (tmp_path / one).write_text("")
    (tmp_path / name).chmod(0)
    words = ["doctor", "--json", "--only", "config", "--", "accelerate", "launch", "--config_file", "acc.yaml", "train.py"]
    said = subprocess.run([*ORDINARY, BUILD / "dshang", *words], cwd=tmp_path, env=ENV, capture_output=True, text=True, timeout=60)
    assert [one for one in json.loads(said.stdout)["not_checked"] if "denied" in one] == [f"{name}: Permission denied"]


@pytest.mark.parametrize("content", [
    '{"hidden_size": 64, "time_step_limit": [0.0, Infinity]}', '{"hidden_size": 64, "a": NaN, "b": -Infinity}', '{"hidden_size": 64, "a": "\\"Infinity, NaN", "b":NaN}',
])
def test_a_model_is_read_as_python_reads_it(content, tmp_path):
    assert json.loads(content)["hidden_size"] == 64
    (tmp_path / "config.json").write_text(content)
    assert findings("--model", ".", "--facts", "-", "--only", "model", text="{}", cwd=tmp_path) == []


@pytest.mark.parametrize("text", [
    "\n" * 1_000_000 + "DO", "x = 1\n" + " " * 1_000_000 + "\nDO", "x" * 1_000_000 + "\nDO", "(" * 300_000 + "\nDO\n" + "\t" * 300_000,
])
@pytest.mark.parametrize("do, trainer", [
    ("import deepspeed\nengine = deepspeed.initialize (model)", "plain deepspeed.initialize"), ("from transformers import Trainer, HfArgumentParser", "Hugging Face"),
    ("    from  accelerate import Accelerator", "Hugging Face"), ("loss.backward()", None), ("# from_transformers import Trainer", None),
])
def test_a_script_of_any_form_is_searched(do, trainer, text, tmp_path):
    """Neither many blanks nor an endless line take the stack."""
    (tmp_path / "train.py").write_text(text.replace("DO", do))
    (tmp_path / "c.json").write_text(json.dumps({**CONFIG, "zero_optimization": {"stage": 0}}))
    said = doctor("c.json", "--only", "config", "--", "deepspeed", "--num_gpus", "2", "train.py", cwd=tmp_path, env=ENV)
    first = " ".join(said.stdout.split("\n\n")[0].split())
    assert said.returncode in (0, 1) and said.stderr == ""
    assert (trainer in first) if trainer else "plain" not in first and "Hugging" not in first, first
    assert ("calls loss.backward()" in " ".join(said.stdout.split())) == (do == "loss.backward()")


@pytest.mark.parametrize("words, named", [
    (["doctor", "--facts", "-", "--env-file", "-"], "--facts, --env-file"), (["doctor", "-", "--hostfile", "-", "--model", "-"], "CONFIG, --hostfile, --model"),
    (["doctor", "--checkpoint", "-", "--facts", "-"], "--checkpoint, --facts"), (["explain", "-", "log", "-"], "more often"),
])
def test_standard_input_is_read_once(words, named, tmp_path):
    (tmp_path / "log").write_text("step 1\n")
    said = subprocess.run([BUILD / "dshang", *words], cwd=tmp_path, env=ENV, input="{}", capture_output=True, text=True, timeout=60)
    assert "standard input can be read once, and is named " in refused(said) and refused(said).endswith(named)
