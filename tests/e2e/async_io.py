"""DeepSpeed's op async_io, compiled as DeepSpeed does it: once in a build folder, for the simulated GPU.

It needs libaio-dev and a compiler.  For the CUDA toolkit stand the headers and the runtime of torch's own packages, and the
simulated driver.
"""
import glob
import os
import subprocess
import sys
import sysconfig

import jobs

FOLDER = os.path.join(jobs.BUILD, "async_io")
LOAD = "from deepspeed.ops.op_builder import AsyncIOBuilder; AsyncIOBuilder().load()"


def toolkit():
    """A folder for CUDA_HOME."""
    home, packages = os.path.join(FOLDER, "cuda"), sysconfig.get_path("purelib")
    found = glob.glob(os.path.join(packages, "nvidia", "cu[0-9]*", "lib", "libcudart.so.*"))
    assert found, "no CUDA runtime beside torch in " + packages
    for folder in ("bin", "lib64"):
        os.makedirs(os.path.join(home, folder), exist_ok=True)
    links = {"include": os.path.join(os.path.dirname(found[0]), "..", "include"), "lib64/libcudart.so": found[0],
             "lib64/libcuda.so": os.path.join(jobs.BUILD, "libsimcuda.so")}
    for name, target in links.items():
        if not os.path.exists(os.path.join(home, name)):
            os.symlink(target, os.path.join(home, name))
    version = subprocess.check_output([sys.executable, "-c", "import torch; print(torch.version.cuda)"], text=True).strip()
    with open(os.path.join(home, "bin", "nvcc"), "w") as file:    # only its version is asked for
        file.write("#!/bin/sh\necho 'Cuda compilation tools, release %s, V%s.0'\n" % (version, version))
    os.chmod(file.name, 0o755)
    return home


def settings():
    """The environment in which a job finds the op, made if it is not there; some minutes."""
    own = {"CUDA_HOME": toolkit(), "TORCH_EXTENSIONS_DIR": os.path.join(FOLDER, "extensions"),
           "PATH": os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]}
    made = subprocess.run([os.path.join(jobs.BUILD, "dshang"), "dry-run", "-n", "1", "--", sys.executable, "-c", LOAD],
                          env={**os.environ, "DSHANG_DISABLE": "1", **own}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=FOLDER, timeout=1800)
    assert made.returncode == 0, "async_io cannot be made (is libaio-dev installed?):\n" + made.stdout[-3000:]
    return own
