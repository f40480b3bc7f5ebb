"""NVIDIA's analyser of Flight Recorder dumps: the package nvidia-resiliency-ext, of which only pure Python is used.

Its wheel is for one Python and a newer glibc, so it is unpacked instead of installed."""
import glob
import os
import subprocess
import sys
import zipfile

VERSION = "0.7.0"
PIP = ["download", "--quiet", "--no-deps", "--only-binary=:all:", "--platform", "manylinux_2_39_x86_64", "--python-version", "3.12"]


def fetch(folder):
    """Downloads and unpacks it; returns what belongs on sys.path."""
    subprocess.run([sys.executable, "-m", "pip", *PIP, "--dest", str(folder), f"nvidia-resiliency-ext=={VERSION}"], check=True)
    unpacked = os.path.join(folder, "nvidia")
    with zipfile.ZipFile(glob.glob(f"{folder}/nvidia_resiliency_ext-*.whl")[0]) as wheel:
        wheel.extractall(unpacked)
    return unpacked


def load(path):
    """Its class; `path` is what fetch() returned."""
    sys.path.insert(0, path)
    from nvidia_resiliency_ext.attribution.trace_analyzer.fr_attribution import CollectiveAnalyzer
    return CollectiveAnalyzer


def analyse(analyser, folder):
    """(its table, the ranks that it calls hanging)."""
    arguments = {"fr_path": str(folder), "pattern": "_dump_*"}
    result = analyser(arguments).run_sync(arguments)[0]
    ranks = result["hanging_ranks"].partition("[")[2].rstrip("]")
    return result["analysis_text"], [int(rank) for rank in ranks.split(",") if rank.strip()]
