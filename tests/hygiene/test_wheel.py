"""What a wheel is made of: its description, the tree it installs, the check of a finished one.  `scripts/wheel` makes one."""
import importlib.machinery
import importlib.util
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
BUILD = pathlib.Path(os.environ.get("TEST_BUILD", ROOT / "build")).absolute()
PACKAGE = ROOT / "package"


def clean(**more):
    return dict({name: value for name, value in os.environ.items() if not name.startswith(("DSHANG_", "LD_PRELOAD"))}, **more)


def loaded(path):
    loader = importlib.machinery.SourceFileLoader("check_wheel", str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_wheel", loader))
    loader.exec_module(module)
    return module


HERE = platform.machine()
CHECK = loaded(ROOT / "scripts" / "check_wheel")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """An installation, with the wheel's command in the place of CMake's link."""
    made = tmp_path_factory.mktemp("prefix")
    subprocess.run(["cmake", "--install", BUILD, "--prefix", made], check=True, capture_output=True, timeout=120)
    (made / "bin" / "dshang").unlink()
    shutil.copy(PACKAGE / "dshang", made / "bin" / "dshang")
    return made


def test_the_version_is_the_programs():
    text = (ROOT / "pyproject.toml").read_text()
    pattern = re.search(r"^regex = '(.*)'$", text, re.MULTILINE)[1]
    version = re.search(pattern, (ROOT / "CMakeLists.txt").read_text())["value"]
    told = subprocess.run([BUILD / "dshang", "--version"], capture_output=True, text=True, check=True).stdout
    assert told.split()[1] == version


def test_what_is_built_is_there():
    text = (ROOT / "pyproject.toml").read_text()
    targets = re.findall(r'"(\w+)"', re.search(r"^build.targets = \[(.*)\]$", text, re.MULTILINE)[1])
    known = subprocess.run(["ninja", "-C", BUILD, "-t", "targets", "all"], capture_output=True, text=True, check=True).stdout
    assert {"dshang", "dshang_preload", "simcuda"} <= set(targets)
    assert [name for name in targets if not re.search(rf"^{name}: phony", known, re.MULTILINE) and not (BUILD / name).exists()] == []


def test_the_command_finds_its_files_from_anywhere(prefix, tmp_path):
    (tmp_path / "linked").symlink_to(prefix / "bin" / "dshang")
    for command in (prefix / "bin" / "dshang", tmp_path / "linked"):
        lib = subprocess.run([command, "path", "lib"], cwd="/", capture_output=True, text=True, check=True).stdout.strip()
        include = subprocess.run([command, "path", "include"], cwd="/", capture_output=True, text=True, check=True).stdout.strip()
        assert pathlib.Path(lib) == prefix / "lib" / "dshang" / "libdshang.so" and pathlib.Path(include) == prefix / "include"
        behind = subprocess.run([command, "path", "dlsym"], cwd="/", capture_output=True, text=True, check=True).stdout.strip()
        assert pathlib.Path(behind) == prefix / "lib" / "dshang" / "libdshang_dlsym.so" and pathlib.Path(behind).is_file()
    told = subprocess.run([prefix / "bin" / "dshang", "dry-run", "-n", "1", "--", sys.executable, "-c", "print(1 + 1)"],
                          cwd=tmp_path, env=clean(), capture_output=True, text=True, timeout=60)
    assert (told.returncode, told.stdout) == (0, "2\n"), told.stderr


def python_with_package(tmp_path, preload, program, **more):
    """Runs a program in a Python whose site-packages hold what the wheel puts there."""
    (tmp_path / "torch").mkdir(exist_ok=True)
    for name in ("__init__.py", "distributed.py"):
        (tmp_path / "torch" / name).write_text("")
    program = f"import site, sys; site.addsitedir({str(PACKAGE)!r}); sys.path.insert(0, {str(tmp_path)!r}); " + program
    return subprocess.run([sys.executable, "-c", program], env=clean(LD_PRELOAD=preload, PYTHONDONTWRITEBYTECODE="1", **more), cwd=tmp_path,
                          capture_output=True, text=True, timeout=60)


def test_the_pth_imports_nothing_without_the_preload(tmp_path):
    told = python_with_package(tmp_path, "", "print('dshang_wake' in sys.modules, len(sys.meta_path))")
    bare = python_with_package(tmp_path, "", "print('dshang_wake' in sys.modules, len(sys.meta_path))", PYTHONNOUSERSITE="1")
    assert told.stdout.startswith("False ") and told.stdout == bare.stdout and told.stderr == ""


def test_the_pth_wakes_a_rank_at_torch_distributed(tmp_path):
    program = ("watches = lambda: sum(type(one).__name__ == '_Watch' for one in sys.meta_path); import torch; before = watches(); "
               "import torch.distributed; print(before, watches()); import time; time.sleep({})")
    out = tmp_path / "out"
    told = python_with_package(tmp_path, str(BUILD / "libdshang.so"), program.format(4), RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                               MASTER_PORT=str(20000 + os.getpid() % 10000), DSHANG_DIR=str(out), TMPDIR=str(tmp_path))
    assert told.returncode == 0 and told.stdout == "1 0\n", told.stderr
    assert "dshang: watching 1 rank of 2" in told.stderr
    quiet = python_with_package(tmp_path, str(BUILD / "libdshang.so"), program.format(0))
    assert (quiet.stdout, quiet.stderr) == ("1 0\n", "")    # no rank: nothing wakes


def test_another_architecture_is_refused_before_anything_is_done():
    told = subprocess.run([ROOT / "scripts" / "wheel", "sparc"], capture_output=True, text=True, timeout=60)
    assert (told.returncode, told.stdout, told.stderr) == (1, "", "wheel: unknown architecture sparc (known: x86_64, aarch64)\n")


def made_wheel(folder, change=None, tag=f"manylinux_2_40_{HERE}"):
    """A wheel of what the check asks for, with a program of this machine in the place of every one."""
    files = {name: b"text" for name in CHECK.FILES}
    if change:
        change(files)
    path = folder / f"dshang-1-py3-none-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            scheme = "" if name.startswith("dshang") else "dshang-1.data/" if name.startswith("scripts") else "dshang-1.data/data/"
            info = zipfile.ZipInfo(scheme + name)
            info.external_attr = 0o100755 << 16 if name.endswith("/dshang") else 0o100644 << 16
            archive.writestr(info, content)
    return path


def program_of(*flags, folder):
    source, program = folder / "a.c", folder / "a"
    source.write_text("#include <string.h>\nint main(int n, char **v) { return (int)strlen(v[0]) + n; }\n")
    subprocess.run(["gcc", source, "-o", program, *flags], check=True)
    return program.read_bytes()


@pytest.mark.parametrize("name, says", [
    ("nothing", []), ("missing", ["include/dshang.h is missing"]), ("foreign", ["lib/dshang/dshang needs libz.so.1"]),
    ("new glibc", ["lib/dshang/dshang needs glibc 2."]), ("preload", ["lib/dshang/libdshang.so needs libm.so.6"]), ("machine", ["lib/dshang/dshang is for another machine"]),
])
def test_the_check_of_a_wheel_finds_what_is_wrong(tmp_path, name, says):
    machine = {"x86_64": "aarch64", "aarch64": "x86_64"}[HERE] if name == "machine" else HERE
    tag = f"manylinux_2_{2 if name == 'new glibc' else 40}_{machine}"

    def change(files):
        if name == "missing":
            del files["include/dshang.h"]
        else:
            place = "lib/dshang/libdshang.so" if name == "preload" else "lib/dshang/dshang"
            flags = {"foreign": ["-Wl,--no-as-needed", "-lz"], "preload": ["-Wl,--no-as-needed", "-lm"]}.get(name, [])
            files[place] = program_of(*flags, folder=tmp_path)

    told = CHECK.problems(made_wheel(tmp_path, change, tag))
    assert len(told) == len(says) and all(line.startswith(begin) for line, begin in zip(told, says)), told
