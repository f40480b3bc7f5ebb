"""What the tests of this folder read from a shared library, by binutils."""
import re
import subprocess


def _lines(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def exported(path):
    """Names of the symbols that others can bind to."""
    return sorted(line.split()[-1] for line in _lines("nm", "-D", "--defined-only", str(path)))


def undefined(path):
    """{name: (kind, version)} of what the library needs from others; kind `w` is a weak reference."""
    found = {}
    for line in _lines("nm", "-D", "--undefined-only", str(path)):
        kind, name = line.split()
        name, _, version = name.partition("@")
        found[name] = kind, version
    return found


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", "\n".join(_lines("readelf", "-d", str(path))))


def dynamic(path):
    return "\n".join(_lines("readelf", "-d", str(path)))


def program_headers(path):
    return "\n".join(_lines("readelf", "-lW", str(path)))


def version_key(version):
    """GLIBC_2.2.5 -> (2, 2, 5); None for anything but a version of libc."""
    match = re.fullmatch(r"GLIBC_([0-9.]+)", version)
    return tuple(int(part) for part in match[1].split(".")) if match else None
