"""Stacks of stuck threads: with the GIL where it is free, else by reading memory of threads that sleep."""
import pytest

WITH_GIL, RAW, REFUSED = 1, 2, 4


def check(result, source, main):
    stacks, lines = result["stacks"], result["lines"]
    assert set(stacks) == {"main", "sleep", "lock", "read", "native"}
    for name, (request, found, truncated, frames) in stacks.items():
        assert request == 5
        if name == "main" and main is None:
            assert (found, frames) == (REFUSED, [])
            continue
        assert found == source, name
        assert frames[0][0].endswith("blocked.py") and frames[0][2] == lines[name]
        assert frames[0][1] == {"main": main, "native": "in_native_call"}.get(name, "in_" + name)
        if name == "native":
            assert [frame[1] for frame in frames[1:39]] == ["nested"] * 38
            assert len(frames) == 48 and truncated > 50
            assert frames[-1][1].endswith("_bootstrap")
        else:
            assert truncated == 0


def test_with_the_gil(run, python):
    check(run(python, "blocked", ""), WITH_GIL, "<module>")


@pytest.mark.parametrize("way", ["process_vm_readv", "pipe"])
def test_without_the_gil_while_the_main_thread_sleeps_with_it(run, python, way):
    check(run(python, "blocked", "sleep", way), RAW, "keep")


def test_thread_that_runs_is_refused(run, python):
    check(run(python, "blocked", "spin"), RAW, None)
