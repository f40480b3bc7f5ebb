"""scripts/check_symbols finds what is missing, stale or contradictory."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parent.parent.parent
SYMBOLS = ROOT / "interpose" / "symbols"


def check(nccl, cuda):
    ended = subprocess.run([sys.executable, str(ROOT / "scripts" / "check_symbols"), "--nccl", str(nccl), "--cuda", str(cuda)],
                           capture_output=True, text=True)
    return ended.returncode, ended.stdout


def rows(name):
    return re.findall(r"^DSHANG_ROW\((\w+)", (SYMBOLS / f"{name}.def").read_text(), re.MULTILINE)


def headers(folder, nccl=(), cuda=(), without=()):
    """Headers that declare every row, `nccl` and `cuda` besides, and not `without`."""
    nccl_names = [name for name in rows("nccl") if name not in without] + list(nccl)
    cuda_names = [name for name in rows("cuda") if name not in without] + list(cuda)
    text = "".join(f"ncclResult_t {name}(ncclComm_t comm,\n    int* a);\n" for name in nccl_names)
    (folder / "nccl.h").write_text("/* ncclCommented(int); */\n" + text)
    plain = [name for name in cuda_names if not name.endswith("_ptsz")]
    text = "".join(f"    #define {name[:-5]} __CUDART_API_PTSZ({name[:-5]})\n" for name in cuda_names if name.endswith("_ptsz"))
    text += "".join(f"extern __host__ cudaError_t CUDARTAPI {name}(void **devPtr, size_t size);\n" for name in plain)
    (folder / "cuda.h").write_text(text)
    return folder / "nccl.h", folder / "cuda.h"


def test_all_rows_and_nothing_else(tmp_path):
    code, output = check(*headers(tmp_path))
    assert code == 0, output


def test_a_new_function_is_named(tmp_path):
    code, output = check(*headers(tmp_path, nccl=["ncclAllReduceTwice"], cuda=["cudaMallocBetter", "cudaEventRecord"]))
    assert code == 1
    assert "ncclAllReduceTwice: without a row" in output
    assert "cudaMallocBetter: without a row" in output
    assert "cudaEventRecord" not in output


def test_a_stale_row_is_named(tmp_path):
    code, output = check(*headers(tmp_path, without=["ncclReduce", "cudaFree"]))
    assert code == 1
    assert "ncclReduce: a row that the header does not declare" in output
    assert "cudaFree: a row that the header does not declare" in output


def test_what_is_left_alone_on_purpose_is_not_named(tmp_path):
    code, output = check(*headers(tmp_path, nccl=["ncclGetVersion", "ncclParamBind"], cuda=["cudaMallocArray"]))
    assert code == 0, output


def test_no_header_is_not_success(tmp_path):
    code, output = check(tmp_path / "none", tmp_path / "none")
    assert code == 2
    assert "nothing compared" in output
