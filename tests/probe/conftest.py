import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
PROBE = os.path.join(HERE, "..", "..", "probe")
sys.path[:0] = [HERE, os.path.abspath(PROBE)]


@pytest.fixture
def native():
    from fake_native import FakeNative
    return FakeNative()


@pytest.fixture
def probe(native):
    from dshang_probe.arming import Probe
    probe = Probe(native)
    yield probe
    probe.patches.undo()
