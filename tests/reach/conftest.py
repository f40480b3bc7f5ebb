import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))

from reach_job import Job  # noqa: E402


@pytest.fixture
def job(tmp_path):
    made = Job(tmp_path)
    yield made
    made.close()


@pytest.fixture
def open_job():
    """In a folder that every user of the machine may enter."""
    import shutil
    import tempfile
    folder = pathlib.Path(tempfile.mkdtemp(prefix="dshang-reach-"))
    os.chmod(folder, 0o777)
    made = Job(folder)
    yield made
    made.close()
    shutil.rmtree(folder)
