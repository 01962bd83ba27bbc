"""Figures of the running server, read by the parsers that others use, and counted against the access log."""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path

from conftest import PATIENCE, Serve, Server
from crews import until
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open_metrics
from prometheus_client.parser import text_string_to_metric_families as read_prometheus
from prometheus_client.samples import Sample

APP = """
def app(environ, start_response):
    path = environ["PATH_INFO"]
    status = "200 OK"
    if path.startswith("/invented"):
        status = "404 Not Found"
    if path == "/breaks":
        status = "500 Internal Server Error"
    fields = [("Content-Type", "text/plain"), ("Server-Timing", 'db;dur=2.5;desc="3 statements"')]
    start_response(status, fields)
    return [path.encode()]
"""

#: The path that was asked for, the route it is counted by, the status, and how often it is asked for.
ASKED = [
    ("/", "GET /", 200, 3),
    ("/user/1", "GET /user/*", 200, 4),
    ("/user/2?a=b", "GET /user/*", 200, 5),
    ("/breaks", "GET /breaks", 500, 2),
    ("/invented/at/will", "other", 404, 6),
    ("/files/a.txt", "/files/*", 200, 7),
    ("/files/b.txt", "/files/*", 404, 2),
    ("/alive", "/alive", 200, 3),
    ("/figures", "/figures", 200, 1),
]


def ask(serve: Serve, tmp_path: Path) -> Server:
    """A server that has answered all of them, and refused one."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.txt").write_text("a")
    options = ("--metrics-path", "/figures", "--health-path", "/alive", "--access-log", "access.log")
    server = serve(*options, "--static", f"/files={folder}", source=APP)
    for path, _, status, times in ASKED:
        for _ in range(times):
            assert server.fetch(path).status == status
    assert server.raw(b"GET / HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 400 ")
    # What is answered is counted in the moment in which it is written to the log.
    log, lines = tmp_path / "access.log", sum(times for *_, times in ASKED) + 1
    until("all are written down", lambda: log.exists() and len(log.read_text().splitlines()) >= lines)
    return server


def fetch_in_turn(server: Server, *accepted: str) -> list[tuple[str, str]]:
    """The same for each of these media types, on one connection: a request is counted before the next one of it is read."""
    connection = server.connect()
    answers = []
    for accept in accepted:
        connection.request("GET", "/figures", headers={"Accept": accept})
        response = connection.getresponse()
        answers.append((response.headers["Content-Type"], response.read().decode()))
    connection.close()
    return answers


def fetch(server: Server, accept: str) -> tuple[str, str]:
    """The content type of the figures and their text."""
    response = server.fetch("/figures", Accept=accept)
    kind = response.headers["Content-Type"]
    assert kind is not None
    return kind, response.body.decode()


def counts_of(samples: list[Sample]) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for sample in samples:
        if sample.name == "maitred_route_requests_total":
            counts[sample.labels["route"], sample.labels["class"]] += int(sample.value)
    return counts


def test_both_texts_are_understood_and_count_what_the_access_log_says(serve: Serve, tmp_path: Path) -> None:
    server = ask(serve, tmp_path)
    wanted = ("application/openmetrics-text; version=1.0.0, text/plain;q=0.5", "text/plain")
    (kind, text), plain = fetch_in_turn(server, *wanted)
    assert kind == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    open_metrics = [sample for family in read_open_metrics(text) for sample in family.samples]
    kind, text = plain
    assert kind == "text/plain; version=0.0.4; charset=utf-8"
    prometheus = [sample for family in read_prometheus(text) for sample in family.samples]

    expected = Counter[tuple[str, str]]()
    for _, route, status, times in ASKED:
        expected[route, f"{status // 100}xx"] += times
    expected["other", "4xx"] += 1
    assert counts_of(open_metrics) == expected
    # The figures themselves were asked for once more in between.
    expected["/figures", "2xx"] += 1
    assert counts_of(prometheus) == expected

    server.stop()
    lines = re.findall(r'^\S+ - - \[.+?\] "(.*?)" (\d)\d\d ', (tmp_path / "access.log").read_text(), re.M)
    expected["/figures", "2xx"] += 1
    assert len(lines) == expected.total()
    by_class = Counter(f"{status}xx" for _, status in lines)
    for status in by_class:
        assert by_class[status] == sum(times for (_, of), times in expected.items() if of == status)
    for path, route, _, _ in ASKED:
        logged = sum(line.startswith(f"GET {path} ") for line, _ in lines)
        assert logged >= 1, (path, route)


def test_times_are_told_by_pool_and_route_and_the_application_s_own(serve: Serve, tmp_path: Path) -> None:
    server = ask(serve, tmp_path)
    _, text = fetch(server, "application/openmetrics-text")
    families = {family.name: family for family in read_open_metrics(text)}
    durations = {
        (sample.labels["route"], sample.labels["span"]): sample.value
        for sample in families["maitred_route_duration_seconds"].samples
        if sample.name.endswith("_count")
    }
    assert durations["GET /user/*", "total"] == durations["GET /user/*", "run"] == 9
    own = [sample for sample in families["maitred_application_duration_seconds"].samples]
    of_users = {
        sample.name.rpartition("_")[2]: sample.value
        for sample in own
        if sample.labels["route"] == "GET /user/*" and "quantile" not in sample.labels
    }
    assert of_users == {"count": 9, "sum": 0.0225}
    middle = [s.value for s in own if s.labels["route"] == "GET /user/*" and s.labels.get("quantile") == "0.5"]
    assert len(middle) == 1 and abs(middle[0] / 0.0025 - 1) < 0.02
    wholes = {
        sample.labels["pool"]: sample.value
        for sample in families["maitred_request_duration_seconds"].samples
        if sample.name.endswith("_count")
    }
    assert wholes == {"default": 20, "engine": 14}


def test_the_process_and_its_listeners_are_told(serve: Serve, tmp_path: Path) -> None:
    server = ask(serve, tmp_path)
    _, text = fetch(server, "application/openmetrics-text")
    values = {sample.name: sample.value for family in read_open_metrics(text) for sample in family.samples}
    assert values["process_open_fds"] < values["process_max_fds"]
    assert 1e6 < values["process_resident_memory_bytes"] < values["process_virtual_memory_bytes"]
    assert values["maitred_process_threads"] >= 2
    assert values["process_cpu_seconds_total"] > 0
    samples = [sample for family in read_open_metrics(text) for sample in family.samples]
    roles = {sample.labels["role"]: sample.value for sample in samples if sample.name == "maitred_threads"}
    assert roles["worker"] >= 1 and sum(roles.values()) == values["maitred_process_threads"]
    times = [sample for sample in samples if sample.name == "maitred_thread_cpu_seconds_total"]
    assert {(sample.labels["role"], sample.labels["mode"]) for sample in times} == {
        (role, mode) for role in roles for mode in ("user", "system")
    }
    # Each thread is counted in whole steps of 10 ms.
    assert sum(sample.value for sample in times) <= values["process_cpu_seconds_total"] + 0.02 * sum(roles.values())
    assert values["maitred_listener_queue"] <= values["maitred_listener_queue_max"]
    assert values["maitred_static_cache_hits_total"] + values["maitred_static_cache_misses_total"] >= 7
    assert 0 < values["maitred_statistics_bytes"] < values["maitred_statistics_max_bytes"] == 8 * 2**20


def test_figures_of_threads_have_their_earlier_names_too_which_are_said_to_be_deprecated(serve: Serve, tmp_path: Path) -> None:
    _, text = fetch(ask(serve, tmp_path), "application/openmetrics-text")
    families = {family.name: family for family in read_open_metrics(text)}
    earlier = {"backup poller": "driver", "reserve": "extra"}
    for new, old in (("maitred_threads", "maitred_role_threads"), ("maitred_thread_cpu_seconds", "maitred_role_cpu_seconds")):
        assert "Deprecated" in families[old].documentation and new in families[old].documentation

        def values(name: str, called: dict[str, str]) -> dict[tuple[str, str | None], float]:
            samples = families[name].samples
            return {(called.get(each.labels["role"], each.labels["role"]), each.labels.get("mode")): each.value for each in samples}

        assert values(new, earlier) == values(old, {})
        assert "backup poller" in {role for role, _ in values(new, {})}
        assert "driver" in {role for role, _ in values(old, {})}


def test_nothing_is_counted_by_route_when_that_is_off(serve: Serve) -> None:
    server = serve("--metrics-path", "/figures", "--statistics=off", source=APP)
    assert server.fetch("/").status == 200
    # An exchange is counted when its last byte has left, which the client may see before; so is each look at the figures.
    limit = time.monotonic() + PATIENCE
    while "\nmaitred_requests_total 0\n" in (text := fetch(server, "text/plain")[1]):
        assert time.monotonic() < limit, text
    assert "\nmaitred_requests_total " in text
    assert "\nmaitred_statistics_on 0\n" in text
    assert "maitred_route_requests_total" not in text
