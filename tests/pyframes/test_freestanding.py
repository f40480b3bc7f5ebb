"""What runs inside a rank needs libc and the loader only, none of it newer than glibc 2.28."""
import re
import subprocess


def test_needs_no_library_but_libc(library):
    text = subprocess.run(["readelf", "-dW", str(library)], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"NEEDED.*\[(.*)\]", text)
    assert set(needed) <= {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def test_needs_no_new_symbol(library):
    text = subprocess.run(["readelf", "-VW", str(library)], capture_output=True, text=True, check=True).stdout
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([0-9.]+)", text)}
    assert versions and max(versions) <= (2, 28)


def test_nothing_of_libstdcxx(library):
    command = ["nm", "-D", "--undefined-only", str(library)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert not re.search(r" (_Z|__cxa_(throw|guard|thread)|__gxx|_Unwind)", text)
