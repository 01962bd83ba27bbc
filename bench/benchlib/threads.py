"""How many threads of an application are held: by calling all of them together (`bench/apps/meeting.py`)."""

from __future__ import annotations

import concurrent.futures
import http.client
import random
import string

#: The longest wait for one answer. A meeting of some of the threads takes a bit more than a second.
PROBE_S = 5.0


def held(port: int, threads: int, limit_s: float = PROBE_S) -> int:
    """How many of so many threads do not come within this time when all are called."""
    def ask(_: int) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=limit_s)
        try:
            # A path of its own: a server may learn that a route is slow, and leave some threads to the others.
            name = "".join(random.choices(string.ascii_lowercase, k=12))
            connection.request("GET", f"/hold-{name}?{threads}")
            return int(connection.getresponse().read())
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        return threads - min(threads, max(pool.map(ask, range(threads))))
