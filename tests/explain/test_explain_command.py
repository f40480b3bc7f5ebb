"""The command itself: what it says to wrong words and to logs that are none."""
import bz2
import gzip
import io
import json
import lzma
import os
import pty
import shutil
import subprocess
import zipfile

import pytest

from explain_cli import BUILD, explain, findings, ids, report

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


@pytest.mark.parametrize("arguments, says", [
    (["no_such.log"], "no_such.log: No such file or directory"),
    (["."], ".: is a directory; name a file in it"),
    (["--frob"], "--frob"),
])
def test_a_mistake_gets_one_line_that_helps(arguments, says, tmp_path):
    told = explain(*arguments, cwd=tmp_path)
    assert (told.returncode, told.stdout) == (2, "")
    assert says in told.stderr and told.stderr.startswith("dshang: ") and told.stderr.count("\n") == 1, told.stderr


@pytest.mark.parametrize("content, says", [
    (b"\x1f\x8bgarbage", "log: unknown compression method"),
    (gzip.compress(b"step 1\n" * 100, mtime=0)[:10], "log: it is cut off"),
], ids=["garbage", "cut"])
def test_a_packed_log_of_which_nothing_can_be_read_is_refused(content, says, tmp_path):
    (tmp_path / "log").write_bytes(content)
    told = explain("log", cwd=tmp_path)
    assert (told.returncode, told.stdout, told.stderr) == (2, "", f"dshang: {says}\n")


@pytest.mark.parametrize("content, note", [
    (f"step 1\n{OOM}\n".encode("utf-16"), "log: it looks like UTF-16: iconv -f UTF-16 -t UTF-8 makes a log of it"),
    (bytes(range(256)) * 40, "log: much of it is no text; is it a log?"),
    (b"step 1 \x1b[31mred\x1b[0m\tloss \xff\r\n" * 40, None),
])
def test_what_is_no_text_is_said_to_be_none(content, note, tmp_path):
    (tmp_path / "log").write_bytes(content)
    assert report("log", cwd=tmp_path)["not_checked"] == ([note] if note else [])


PACKERS = {"zst": "zstd -dc", "xz": "xz -dc", "bz2": "bzip2 -dc", "lz4": "lz4 -dc", "zip": "unzip -p"}


def packed(ending, content):
    if ending == "xz":
        return lzma.compress(content)
    if ending == "bz2":
        return bz2.compress(content)
    if ending == "zip":
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("job.log", content)
        return buffer.getvalue()
    return {"zst": b"\x28\xb5\x2f\xfd", "lz4": b"\x04\x22\x4d\x18"}[ending] + os.urandom(200)


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("content", [b"", f"step 1\n{OOM}\n".encode() * 2000], ids=["empty", "log"])
def test_a_log_that_another_program_packed_is_named_with_the_way_to_read_it(ending, content, tmp_path):
    (tmp_path / "log 1").write_bytes(packed(ending, content))   # the name's ending is not looked at
    command = PACKERS[ending]
    name = {"zst": "zstd", "bz2": "bzip2"}.get(ending, ending)
    for path, says in (("log 1", f"log 1: it is packed by {name}: {command} 'log 1' | dshang explain"),
                       ("./log 1", f"./log 1: it is packed by {name}: {command} './log 1' | dshang explain")):
        told = explain(path, cwd=tmp_path)
        assert (told.returncode, told.stdout, told.stderr) == (2, "", f"dshang: {says}\n")
    told = explain("-", text=(tmp_path / "log 1").read_bytes())
    assert told.stderr == f"dshang: standard input: it is packed by {name}: {command} | dshang explain\n"
    way = command.split()[0]
    if ending in ("xz", "bz2") and shutil.which(way):   # the way that is told is one
        (tmp_path / "dshang").symlink_to(BUILD / "dshang")
        line = f"PATH=$PATH:. ; {command} 'log 1' | dshang explain"
        said = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert said.returncode == (1 if content else 0) and ("[12.6-1]" in said.stdout or "[12.6-2]" in said.stdout) == bool(content), said


@pytest.mark.parametrize("beginning", ["BZh", "BZhost: 7", "BZh91 workers", "PK", "PK the packer", "7z", "LZIP is not here", "(zstd)", "xz"])
def test_a_log_that_begins_like_a_packed_one_is_read(beginning):
    assert ids(f"{beginning}\n{OOM}\n") == ["12.6-1"]


def test_what_is_found_far_behind_in_a_line_is_quoted():
    assert "… CUDA out of memory. Tried to allocate 2.00 GiB" in findings("-", text="x" * 5000 + OOM + "\n")[0]["summary"]


@pytest.mark.parametrize("line, port", [
    ("torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29517, useIpv6: true, "
     "code: -98, name: EADDRINUSE, message: address already in use", 29517),
    ("[W1102 10:00:00.1 socket.cpp:464] [c10d] The server socket has failed to bind to [::]:29518 (errno: 98 - Address already in use).", 29518),
])
def test_the_port_that_is_in_use_is_the_one_to_look_at(line, port):
    told = findings("-", text=line + "\n")
    assert [one["id"] for one in told] == ["12.3-3"] and f"'sport = :{port}'" in told[0]["fix"][0]
    assert "29500" not in json.dumps(told)


def test_standard_input_is_read_where_no_log_is_named():
    told = explain(text=OOM + "\n")
    assert told.returncode == 1 and "WILL FAIL [12.6-1]" in told.stdout and "standard input:1" in told.stdout


def test_an_empty_log_is_said_to_be_empty(tmp_path):
    (tmp_path / "empty.log").write_text("")
    told = explain("empty.log", cwd=tmp_path)
    assert told.returncode == 0 and "nothing that is known to be wrong" in told.stdout
    assert report(tmp_path / "empty.log")["not_checked"] == [f"{tmp_path}/empty.log is empty"]


def test_bytes_that_are_no_text_are_no_trouble():
    noise = bytes(range(256)) * 4096
    assert findings("-", text=noise) == []
    assert [one["id"] for one in findings("-", text=noise + b"\n\xff\xfe" + OOM.encode() + b"\xff\x00\n" + noise)] == ["12.6-1"]


def test_an_endless_line_is_read_in_pieces():
    assert ids("x" * 3_000_000 + " " + OOM + " " + "y" * 3_000_000) == ["12.6-1"]
    told = explain(text="\r".join(f" 5%|#  | {i}/900 [00:01<00:10,  9.2it/s]" for i in range(1, 40000)) + "\n" + OOM)
    assert "[12.6-2]" in told.stdout and "after 39999 steps" in told.stdout


def test_a_packed_log_that_is_cut_off_is_read_up_to_there(tmp_path):
    noise = "".join(f"{os.urandom(20).hex()}\n" for _ in range(20000))
    packed = gzip.compress((OOM + "\n" + noise).encode())
    (tmp_path / "log.gz").write_bytes(packed[:len(packed) // 2])
    told = report(tmp_path / "log.gz")
    assert [one["id"] for one in told["findings"]] == ["12.6-1"]
    assert len(told["not_checked"]) == 1 and "could not be read behind line" in told["not_checked"][0]


def test_an_unknown_error_is_said_to_be_unknown_with_its_traceback():
    log = ('[rank1]: Traceback (most recent call last):\n[rank1]:   File "train.py", line 8, in <module>\n[rank1]:     main()\n'
           '[rank1]:   File "train.py", line 5, in main\n[rank1]:     raise Odd("7 of 9")\n[rank1]: odd.Odd: 7 of 9\n'
           '[rank0]: Traceback (most recent call last):\n[rank0]:   File "train.py", line 9, in main\n[rank0]: ValueError: later\n')
    told = explain(text=log)
    assert told.returncode == 0
    assert "UNKNOWN ERROR odd.Odd: 7 of 9" in told.stdout and "standard input:6, rank 1" in told.stdout
    assert 'File "train.py", line 5, in main' in told.stdout and "later" not in told.stdout
    told = report("-", text=log)
    assert told["findings"] == [] and [one["summary"] for one in told["unknown"]] == ["odd.Odd: 7 of 9", "ValueError: later"]


def test_an_ignored_exception_and_a_caught_launcher_are_no_unknown_errors():
    log = ('Exception ignored in: <function A.__del__ at 0x1>\nTraceback (most recent call last):\n  File "a.py", line 1, in __del__\n'
           "AttributeError: x\nTraceback (most recent call last):\n"
           '  File "run.py", line 1, in <module>\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n')
    assert report("-", text=log)["unknown"] == []


def test_a_chain_of_exceptions_is_one():
    log = ('Traceback (most recent call last):\n  File "a.py", line 1, in f\nKeyError: 3\n\n'
           "During handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n"
           f'  File "a.py", line 2, in f\n{OOM}\n')
    told = report("-", text=log)
    assert [one["id"] for one in told["findings"]] == ["12.6-1"] and told["unknown"] == []


def test_a_bar_is_drawn_on_a_terminal_only(tmp_path):
    """Of a pipe that is slow: seconds pass."""
    ours, theirs = pty.openpty()
    feeder = "import sys, time\nfor _ in range(14):\n    sys.stdout.write('step\\n' * 700000); sys.stdout.flush(); time.sleep(0.12)\n"
    slow = subprocess.Popen(["python3", "-c", feeder], stdout=subprocess.PIPE)
    told = subprocess.run([BUILD / "dshang", "explain"], stdin=slow.stdout, stdout=subprocess.PIPE, stderr=theirs, timeout=60)
    os.close(theirs)
    slow.wait()
    assert told.returncode == 0 and b"dshang: " in os.read(ours, 4096)
    os.close(ours)


def test_the_catalogue_is_complete():
    entries = json.loads(explain("--entries", "--json").stdout)["entries"]
    assert len(entries) >= 80 and len({entry["id"] for entry in entries}) == len(entries)
    for entry in entries:
        assert all(value for name, value in entry.items() if name != "patterns"), entry
    text = explain("--entries").stdout
    assert all(f"{entry['id']}  {entry['severity']}: " in text for entry in entries)
    assert text.endswith(f"{len(entries)} known errors\n")
