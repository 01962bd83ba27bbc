"""A gentle load on the demo's own server, so that the dashboard has something to show: about twenty requests a second, for two minutes at most."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import ssl
import time

#: How long a load goes on, in seconds.
TIME = 120.0
CLIENTS = 4
#: Between two requests of a client, in seconds.
PAUSE = 0.2
#: What the clients ask for in turn: quick pages, files, a database, another service, one that is slow and one that is not there.
PATHS = ["/", "/static/demo.css", "/guestbook", "/calls?service=quick", "/static/cloche.svg", "/slow?seconds=0.4", "/guestbook", "/live/", "/nothing",
         "/calls?service=slow"]


class Load:
    """Runs on the event loop that begins it."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._until = 0.0

    def change(self, server: tuple[str, int | None] | None, scheme: str) -> None:
        """Begins the load on this listener, or ends it if there is one. ValueError: it is no TCP port."""
        if self.seconds_left() is not None:
            self.end()
            return
        if server is None or server[1] is None:
            raise ValueError("the load needs a TCP port; this came by a Unix socket")
        self._until = time.monotonic() + TIME
        self._task = asyncio.get_running_loop().create_task(self._run(server[1], scheme == "https"))

    def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def seconds_left(self) -> int | None:
        """None without a load."""
        is_running = self._task is not None and not self._task.done()
        return max(0, round(self._until - time.monotonic())) if is_running else None

    async def _run(self, port: int, is_tls: bool) -> None:
        await asyncio.gather(*(self._client(number, port, is_tls) for number in range(CLIENTS)))

    async def _client(self, number: int, port: int, is_tls: bool) -> None:
        for path in itertools.cycle(PATHS[number:] + PATHS[:number]):
            left = self._until - time.monotonic()
            if left <= 0:
                return
            # A server that refuses, or is late, is what the dashboard shows.
            with contextlib.suppress(OSError, asyncio.TimeoutError):
                await asyncio.wait_for(get(path, port, is_tls), left)
            await asyncio.sleep(PAUSE)


async def get(path: str, port: int, is_tls: bool) -> None:
    """Asks this machine itself, and reads the answer to its end."""
    context = ssl._create_unverified_context() if is_tls else None
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUser-Agent: demo-load\r\nConnection: close\r\n\r\n".encode())
        while await reader.read(65536):
            pass
    finally:
        writer.close()
