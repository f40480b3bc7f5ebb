import pytest

from fakejob import Job


@pytest.fixture
def job(tmp_path):
    with Job(tmp_path) as one:
        yield one
