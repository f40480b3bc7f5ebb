"""libdshang.so starts everywhere torch starts, and gives nothing away.

TEST_BUILD: the build directory (default build/).  A build with sanitizers brings their libraries along: of it only the
exports are looked at.
"""
import os
import pathlib
import platform
import re
import subprocess

import elf

ROOT = pathlib.Path(__file__).parent.parent.parent
BUILD = pathlib.Path(os.environ.get("TEST_BUILD", ROOT / "build"))
LIBRARY = BUILD / "libdshang.so"
NEWEST_LIBC = 2, 28
FIRST_LIBC = {"x86_64": "GLIBC_2.2.5", "aarch64": "GLIBC_2.17"}[platform.machine()]
UNDEFINED = elf.undefined(LIBRARY)
SANITIZED = any(name.startswith(("__asan_", "__tsan_", "__ubsan_")) for name in UNDEFINED)


def rows():
    names = []
    for path in sorted((ROOT / "interpose" / "symbols").glob("*.def")):
        names += re.findall(r"^DSHANG_(?:ROW|EXPORT)\((\w+)", path.read_text(), re.MULTILINE)
    return sorted(names)


def test_exports_are_the_golden_list():
    golden = (ROOT / "tests" / "golden" / "exports.txt").read_text().split()
    assert elf.exported(LIBRARY) == golden


def test_exports_are_the_rows():
    assert elf.exported(LIBRARY) == rows()


def test_needs_libc_and_the_loader_only():
    allowed = {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    assert SANITIZED or set(elf.needed(LIBRARY)) <= allowed


def test_no_version_that_an_old_libc_lacks():
    versions = {version for _, version in UNDEFINED.values() if version}
    too_new = [version for version in versions if (elf.version_key(version) or (99,))[:2] > NEWEST_LIBC]
    assert SANITIZED or (versions and not too_new)


def test_the_tool_for_nvtx_loads_everywhere_too():
    tool = BUILD / "libdshang_nvtx.so"
    assert elf.exported(tool) == ["InitializeInjectionNvtx2"]
    undefined = elf.undefined(tool)
    assert {"dshang_range_push", "dlopen"} <= set(undefined) and undefined["dlopen"] == ("w", FIRST_LIBC)
    assert SANITIZED or set(elf.needed(tool)) <= {"libc.so.6"}
    versions = [elf.version_key(version) for _, version in undefined.values() if version]
    assert SANITIZED or max(versions)[:2] <= NEWEST_LIBC


def test_the_library_for_dlsym_loads_everywhere_too():
    library = BUILD / "libdshang_dlsym.so"
    assert elf.exported(library) == ["dlsym"]
    undefined = elf.undefined(library)
    assert undefined["dlvsym"] == ("w", FIRST_LIBC) and undefined["dshang_symbol_asked"][0] == "w" and "dlsym" not in undefined
    assert SANITIZED or set(elf.needed(library)) <= {"libc.so.6"}
    versions = [elf.version_key(version) for _, version in undefined.values() if version]
    assert SANITIZED or max(versions)[:2] <= NEWEST_LIBC


def test_what_moved_between_libraries_is_weak_and_of_the_first_version():
    moved = {name: found for name, found in UNDEFINED.items() if re.match(r"(pthread_|sem_|dl(?!_iterate_phdr)[a-z])", name)}
    assert SANITIZED or {"dlsym", "pthread_create"} <= set(moved)
    assert SANITIZED or {name: found for name, found in moved.items() if found != ("w", FIRST_LIBC)} == {}


def test_no_object_code_of_the_cxx_library_and_no_unwinder():
    foreign = [name for name in UNDEFINED if name.startswith(("_Z", "_Unwind", "__gxx", "__cxa_t", "__cxa_a", "__cxa_b"))]
    assert SANITIZED or foreign == []
    symbols = subprocess.run(["nm", str(LIBRARY)], capture_output=True, text=True, check=True).stdout
    assert not re.search(r" [tTwW] (_Unwind_|__cxa_throw|_ZSt|_ZNSt)", symbols)


def test_hardened_and_without_text_relocations():
    assert "TEXTREL" not in elf.dynamic(LIBRARY)
    assert "NOW" in elf.dynamic(LIBRARY)
    stack = next(line for line in elf.program_headers(LIBRARY).splitlines() if "GNU_STACK" in line)
    assert "RWE" not in stack
    assert "GNU_RELRO" in elf.program_headers(LIBRARY)


def test_thread_local_storage_is_small():
    """Every thread of every process that inherits the preload carries it."""
    line = next(line for line in elf.program_headers(LIBRARY).splitlines() if line.split()[:1] == ["TLS"])
    assert int(line.split()[5], 16) <= 4096


def test_links_nothing_of_the_monitor_s_side():
    symbols = subprocess.run(["nm", "-C", str(LIBRARY)], capture_output=True, text=True, check=True).stdout
    assert "dshang::interpose::" in symbols
    assert not re.search(r"dshang::(job|detect|monitor)::", symbols)


def test_an_exception_passes_through_a_wrapper(tmp_path):
    compiler = os.environ.get("CXX", "c++")
    programs = pathlib.Path(__file__).parent / "programs"
    subprocess.run([compiler, "-shared", "-fPIC", "-Wl,-soname,libnccl.so.2", "-o", str(tmp_path / "libnccl.so.2"),
                    str(programs / "throwing_nccl.cpp")], check=True)
    subprocess.run([compiler, "-o", str(tmp_path / "catching"), str(programs / "catching.cpp"),
                    str(tmp_path / "libnccl.so.2"), f"-Wl,-rpath,{tmp_path}"], check=True)
    env = dict(os.environ, LD_PRELOAD=str(LIBRARY), DSHANG_DIR=str(tmp_path / "dshang"), DSHANG_MONITOR="/bin/false")
    ended = subprocess.run([str(tmp_path / "catching")], env=env, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "caught: thrown by NCCL\ncaught: thrown by NCCL\n")
