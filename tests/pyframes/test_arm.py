"""Arming: the walk is checked against Python, the probe's files run, its native side writes flight memory."""


def test_probe_is_asked_until_it_is_armed_and_writes_records(run, python):
    result = run(python, "arm")
    assert result["answers"][-1] == 1 and result["answers"][0] == 0
    assert result["asked"] == 2
    assert result["state"] == 1
    assert result["added"] == ["dshang_probe", "dshang_probe.helper"]
    assert "probe.armed=größe" in result["facts"]
    assert result["exceptions"][0].split("\t") == ["ValueError", "a message", "train.py", "main", "33"]
    kinds = {"step": "1", "micro": "2", "push": "3", "pop": "4", "enter": "5", "exit": "6", "gather": "7", "end": "8",
             "mode": "9", "teardown": "10"}
    by_kind = {name: [visit for visit in result["visits"] if visit[0] == kind] for name, kind in kinds.items()}
    assert by_kind["step"][0][1] == "7"
    assert by_kind["micro"][0][2] == "2"
    assert by_kind["push"][0][5] == "forward" and by_kind["pop"][0][5] == "forward"
    assert by_kind["enter"][0][3:7] == ["1", "0", "forward", "layer"]
    assert by_kind["exit"][0][5:7] == ["forward", "layer"]
    assert by_kind["enter"][1][3:7] == ["0", "0", "backward", "layer"]
    assert by_kind["gather"][0][4:8] == [str(2 ** 64 - 5), "forward", "layer", "1 2 3"]
    assert by_kind["end"][0][7] == "12" and by_kind["mode"][0][7] == "COMPLETE" and len(by_kind["teardown"]) == 1
    assert result["stderr"] == ""


def test_frames_of_the_probe_are_no_part_of_a_site(run, python):
    result = run(python, "arm")
    assert [function for _, function, _ in result["inside"]] == ["check_inside", "wrapped", "<module>"]
    visit = result["visits"][-1]
    assert visit[9] == "training" and visit[10] == str(result["line"]) and visit[8].endswith("arm.py")


def test_walk_that_differs_from_python_is_off_with_one_line(run, python):
    result = run(python, "off", "getframe")
    assert result["site"] != 0 and result["after"] == 0 and result["state"] == 2
    assert result["probe"]
    lines = result["stderr"].splitlines()
    assert len(lines) == 1 and lines[0].startswith("dshang: no Python call sites and stacks: ")


def test_switches(run, python):
    result = run(python, "off", DSHANG_PYTHON_STACKS="0")
    assert (result["site"], result["after"], result["state"], result["probe"]) == (0, 0, 2, True)
    result = run(python, "off", DSHANG_PROBE="0")
    assert result["site"] and result["after"] and result["state"] == 1 and not result["probe"]
    result = run(python, "off", DSHANG_PROBE="0", DSHANG_PYTHON_STACKS="0")
    assert result["site"] == 0 and not result["probe"] and result["stderr"] == ""


def test_an_interpreter_on_its_way_out_is_left_alone(run, python):
    for moment in ("atexit", "teardown"):
        assert run(python, "late", moment)["stderr"] == "", moment


def test_a_time_out_of_the_program_reaches_it_and_arming_goes_on(run, python):
    result = run(python, "interrupted")
    assert result == {"surfaced": 1, "state": 1, "probe": True, "stderr": ""}
