"""Conformance: Autobahn's own fuzzing client (scripts/autobahn installs it where Python 2.7 is). Only with MAITRED_LONG=1: it waits a lot.

What it wants is in websocket_cases.py, too; here it is its own word.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from sites import site, start_asgi
from test_websocket_cases import APP

WSTEST = Path(__file__).resolve().parents[2] / ".build/tools/autobahn/wstest.py"
#: In seconds.
LIMIT = 1800

#: Which cases there are, and how many. Those of compression send 1,000 messages each: of the largest kinds one is enough.
PARTS = {
    "protocol": (["*"], ["9.*", "12.*", "13.*"], 247),
    "limits": (["9.*"], [], 54),
    "compression": (["12.*", "13.*"], [f"{group}.{number}" for group in ("12.*", "13.*") for number in (9, 10, 14, 15, 16, 18)], 144),
}

pytestmark = [
    pytest.mark.skipif("MAITRED_LONG" not in os.environ, reason="MAITRED_LONG is not set"),
    pytest.mark.skipif(not WSTEST.exists(), reason="needs Autobahn (scripts/autobahn .build/tools, with Python 2.7)"),
    pytest.mark.timeout(LIMIT + 60),
]


@pytest.mark.parametrize("part", PARTS)
def test_every_case_is_ok(tmp_path: Path, part: str) -> None:
    cases, excluded, count = PARTS[part]
    (tmp_path / "echoes.py").write_text(APP)
    for each in site(start_asgi(tmp_path, "echoes:app", "asyncio")):
        servers = [{"agent": "server", "url": f"ws://127.0.0.1:{each.server.port}"}]
        specification = {"outdir": "reports", "servers": servers, "cases": cases, "exclude-cases": excluded, "exclude-agent-cases": {}}
        (tmp_path / "specification.json").write_text(json.dumps(specification))
        command = [str(WSTEST), "-m", "fuzzingclient", "-s", "specification.json"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=LIMIT)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        results = json.loads((tmp_path / "reports/index.json").read_text())["server"]
    # Informational: 7.1.6 and 7.13, for which there is no right and wrong.
    kinds = Counter(result["behavior"] for result in results.values())
    print(f"{part}: {dict(kinds)}")
    wrong = {
        name: (result["behavior"], result["behaviorClose"], result["remoteCloseCode"])
        for name, result in results.items()
        if not {result["behavior"], result["behaviorClose"]} <= {"OK", "INFORMATIONAL"}
    }
    # What is not strict has seen the fault behind a message before the application has answered that.
    early = {"3.2", "3.3", "3.4", "4.1.3", "4.1.4", "4.1.5", "4.2.3", "4.2.4", "4.2.5", "5.15"}
    wrong = {name: result for name, result in wrong.items() if name not in early or result[:2] != ("NON-STRICT", "OK")}
    assert not wrong, wrong
    assert len(results) == count
