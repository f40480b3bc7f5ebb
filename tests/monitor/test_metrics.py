"""DSHANG_METRICS: what the monitor tells Prometheus, as its own parser and, in the long part, as itself reads it."""
import contextlib
import json
import os
import pathlib
import re
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest
from fakejob import Job, monitors_of, wait_for
from prometheus_client.openmetrics.parser import text_string_to_metric_families

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LONG = os.environ.get("E2E_LONG") == "1"


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def samples(port):
    """{(name, labels): value}, read by Prometheus' own strict parser; {} while nobody answers."""
    try:
        kind, text = get(f"http://127.0.0.1:{port}/metrics")
    except (urllib.error.URLError, ConnectionError):
        return {}
    assert kind.startswith("application/openmetrics-text; version=1.0.0"), kind
    return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(text) for sample in family.samples}


def with_finding(port):
    """The samples once there is a finding among them."""
    seen = samples(port)
    return any(name == "dshang_findings" for name, _ in seen) and seen


def of_rank(name, rank):
    return (name, (("rank", str(rank)),))


@pytest.fixture
def served(tmp_path):
    port = free_port()
    with Job(tmp_path, DSHANG_METRICS=f"127.0.0.1:{port}", DSHANG_STALL_AFTER="1") as job:
        job.port = port
        yield job


def test_ranks_steps_and_calls(served):
    before = time.time()
    ranks = served.start(2)
    for step in (3, 4, 5):
        for rank in ranks:
            rank.do(f"step {step}")
            rank.do("call all_reduce 8")
    # The size of the job comes with the first look at all of it, up to a second after the first records.
    seen = wait_for(lambda: (now := samples(served.port)).get(of_rank("dshang_step", 1)) == 5
                    and ("dshang_world_size", ()) in now and now)
    for rank in range(2):
        assert seen[of_rank("dshang_rank_alive", rank)] == 1
        assert seen[of_rank("dshang_calls_total", rank)] == 3
        assert seen[of_rank("dshang_steps_per_second", rank)] > 0
        assert before - 1 <= seen[of_rank("dshang_last_progress_timestamp_seconds", rank)] <= time.time() + 1
    assert seen["dshang_world_size", ()] == 2
    assert seen["dshang_verdict", (("dshang_verdict", "healthy"),)] == 1
    about = next(dict(labels) for name, labels in seen if name == "dshang_job_info")
    assert about["directory"] == str(served.dir) and about["attempt"] == "1", about


def test_a_dead_rank_is_a_finding(served):
    ranks = served.start(2)
    ranks[0].do("wait all_reduce 8")
    ranks[1].kill()
    seen = wait_for(lambda: with_finding(served.port))
    assert seen[of_rank("dshang_rank_alive", 1)] == 0
    assert seen["dshang_findings", (("class", "rank-dead"), ("severity", "hang"))] == 1, seen
    assert seen["dshang_verdict", (("dshang_verdict", "hang"),)] == 1


def test_nothing_else_is_served_and_silent_readers_stop_nobody(served):
    ranks = served.start(2)
    wait_for(lambda: samples(served.port))
    with contextlib.ExitStack() as silent:
        for _ in range(3):
            silent.enter_context(socket.create_connection(("127.0.0.1", served.port))).send(b"GET ")
        for rank in ranks:
            rank.do("step 1")
        begin = time.monotonic()
        assert samples(served.port)
        assert time.monotonic() - begin < 4           # less than the patience with one of them
        ranks[1].kill()
        wait_for(lambda: "rank 1" in served.said())
    for path in ("/", "/metrics/../etc/passwd", "/etc/passwd"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            wait_for(lambda: get(f"http://127.0.0.1:{served.port}{path}"))
        assert refused.value.code == 404


def test_a_slow_reader_does_not_keep_the_monitor(served):
    ranks = served.start(1)
    with socket.create_connection(("127.0.0.1", served.port)) as slow:
        slow.send(b"GET /metrics HTTP/1.1\r\n")
        time.sleep(0.5)                                   # its thread is reading by now
        assert ranks[0].end() == 0
        end = time.monotonic() + 60
        while monitors_of(served.number):
            assert time.monotonic() < end
            try:
                slow.send(b"X")                           # more often than the server's patience for one reading
            except ConnectionError:
                pass
            time.sleep(0.2)


@pytest.mark.parametrize("value", ["9464", "localhost:", "localhost:0", "localhost:70000", "localhost:http"])
def test_a_bad_place_is_told_and_watching_goes_on(tmp_path, value):
    with Job(tmp_path, DSHANG_METRICS=value) as job:
        ranks = job.start(1)
        wait_for(lambda: f"DSHANG_METRICS={value} is not host:port" in job.said())
        ranks[0].do("step 1")
        assert ranks[0].end() == 0


def test_a_place_that_is_taken_is_told(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        place = "127.0.0.1:%d" % taken.getsockname()[1]
        with Job(tmp_path, DSHANG_METRICS=place) as job:
            job.start(1)
            wait_for(lambda: f"DSHANG_METRICS={place}: cannot listen there" in job.said())


def test_documents_and_dashboard_name_what_is_served(served):
    ranks = served.start(2)
    for step in (1, 2):
        for rank in ranks:
            rank.do(f"step {step}")
            rank.do("call all_reduce 8")
    ranks[0].do("wait all_reduce 8")
    ranks[1].kill()
    seen = wait_for(lambda: with_finding(served.port))
    names = {name for name, _ in seen}
    page = (ROOT / "docs" / "metrics.md").read_text()
    assert set(re.findall(r"^\| `(dshang_\w+)`", page, re.M)) == names
    dashboard = json.loads((ROOT / "docs" / "grafana.json").read_text())
    asked = set(re.findall(r"dshang_\w+", " ".join(target["expr"] for panel in dashboard["panels"]
                                                   for target in panel["targets"])))
    assert asked and asked <= names, asked - names


def prometheus_scrapes_it(served, tmp_path):
    subprocess.run(["apt-get", "download", "prometheus"], cwd=tmp_path, check=True, capture_output=True)
    package = next(tmp_path.glob("prometheus_*.deb"))
    subprocess.run(["dpkg", "-x", package, tmp_path / "unpacked"], check=True)
    port = free_port()
    (tmp_path / "prometheus.yml").write_text(json.dumps({
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [{"job_name": "dshang", "static_configs": [{"targets": [f"127.0.0.1:{served.port}"]}]}]}))
    ranks = served.start(2)
    server = subprocess.Popen([tmp_path / "unpacked/usr/bin/prometheus", "--config.file", tmp_path / "prometheus.yml",
                               "--storage.tsdb.path", tmp_path / "data", "--web.listen-address", f"127.0.0.1:{port}"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for rank in ranks:
            rank.do("step 7")

        def answer(query):
            try:
                url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
                return json.loads(get(url)[1])["data"]["result"]
            except (urllib.error.URLError, ConnectionError):
                return []
        found = wait_for(lambda: answer("dshang_step == 7"))
        assert {one["metric"]["rank"] for one in found} == {"0", "1"}
        assert answer("up")[0]["value"][1] == "1"
    finally:
        server.terminate()
        server.wait()


if LONG:
    test_prometheus_scrapes_it = prometheus_scrapes_it
