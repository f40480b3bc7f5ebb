"""Python call sites, read without the GIL, under every interpreter."""


def test_sites_are_those_that_python_reports(run, python):
    result = run(python, "sites")
    assert result["problems"] == []
    assert result["state"] == 1


def test_cost_of_a_known_site(run, python):
    cost = run(python, "bench")
    assert cost["20"] < 3000  # ns; 100 to 300 on a machine with nothing else to do
    assert cost["7"] < cost["64"] < cost["96"]


def test_many_threads_in_code_that_comes_and_goes(run, python):
    result = run(python, "stress", "2")
    assert result["problems"] == []
    assert result["state"] == 1
    assert result["requests"] >= 5 and result["stacks"] > 5


def test_forked_child_reads_its_own(run, python):
    result = run(python, "forked")
    assert result["problems"] == []
    child = result["child"]
    assert child == {"problems": [], "function": "work", "same": True, "state": 1, "stacks": 1, "tid": True}


def test_interpreter_ends_while_threads_read(run, python):
    for _ in range(5):
        assert run(python, "ending")["stderr"] == ""
