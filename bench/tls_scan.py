"""What sslscan finds with the defaults of maitred, nginx and granian, as a table: `.venv/bin/python bench/tls_scan.py > bench/results/tls-scan.md`.

One certificate for all (ECDSA P-256, self-signed), no further option about TLS.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from benchlib import servers  # noqa: E402

APP = """async def app(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})
"""
NGINX = """worker_processes 1; pid {folder}/pid; error_log {folder}/error.log; events {{}}
http {{ access_log off; server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem; location / {{ return 204; }} }} }}
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost", "-keyout", folder / "key.pem", "-out", folder / "cert.pem"], check=True, capture_output=True)
        (folder / "app.py").write_text(APP)
        # Their folder is root's own; workers of nginx run as nobody.
        folder.chmod(0o755)
        tools = Path(sys.executable).parent
        found = {}
        for server in ("maitred", "nginx", "granian"):
            port = servers.free_port()
            (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port))
            command = {
                "maitred": [tools / "maitred", "app:app", "--listen", f"127.0.0.1:{port}", "--tls-cert", "cert.pem", "--tls-key", "key.pem"],
                "nginx": [shutil.which("nginx") or "/usr/sbin/nginx", "-g", "daemon off;", "-c", folder / "nginx.conf"],
                "granian": [tools / "granian", "--interface", "asgi", "--port", str(port), "--ssl-certificate", "cert.pem", "--ssl-keyfile", "key.pem", "app:app"],
            }[server]
            process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                answers(port)
                found[server] = scan(port)
            finally:
                process.terminate()
                process.wait()
    print("# sslscan with the defaults of three servers\n")
    print(f"sslscan {version(['sslscan', '--version'])}; {version([str(tools / 'maitred'), '--version'])}, {version(['nginx', '-v'])}, {version([str(tools / 'granian'), '--version'])}.")
    print("One self-signed certificate (ECDSA P-256), no other option about TLS. `bench/tls_scan.py` writes this.\n")
    print("| |", " | ".join(found), "|")
    print("|---" * (1 + len(found)) + "|")
    for row in next(iter(found.values())):
        print("|", row, "|", " | ".join(each[row] for each in found.values()), "|")


def answers(port: int) -> None:
    for _ in range(100):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise SystemExit(f"nobody answers at port {port}")


def version(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    return " ".join(next(line for line in text.splitlines() if re.search(r"\d", line)).split())


def scan(port: int) -> dict[str, str]:
    done = subprocess.run(["sslscan", "--no-colour", "--xml=-", "--sni-name=localhost", f"127.0.0.1:{port}"], capture_output=True, text=True, check=True)
    test = ElementTree.fromstring(done.stdout[done.stdout.index("<?xml"):]).find("ssltest")
    assert test is not None
    suites = test.findall("cipher")

    def all_of(tag: str, name: str, key: str, value: str) -> str:
        return ", ".join(dict.fromkeys(f"{each.get(name)}" for each in test.findall(tag) if each.get(key) == value)) or "none"

    return {
        "versions": ", ".join(f"{each.get('type')} {each.get('version')}" for each in test.findall("protocol") if each.get("enabled") == "1"),
        "suites": str(len(suites)),
        "suites without forward secrecy": ", ".join(each.get("cipher", "") for each in suites if each.get("cipher", "").startswith("AES")) or "none",
        "suites of CBC": ", ".join(each.get("cipher", "") for each in suites if not any(word in each.get("cipher", "") for word in ("GCM", "CHACHA", "CCM"))) or "none",
        "groups": ", ".join(each.get("name", "") for each in test.findall("group")),
        "compression": all_of("compression", "supported", "supported", "1").replace("1", "yes"),
        "renegotiation that is not secure": "yes" if any(each.get("supported") == "1" and each.get("secure") == "0" for each in test.findall("renegotiation")) else "no",
        "Heartbleed": all_of("heartbleed", "sslversion", "vulnerable", "1"),
        "certificate": "self-signed" if any((each.text or "") in ("1", "true") for each in test.iter("self-signed")) else "–",
    }


if __name__ == "__main__":
    main()
