"""A connection to the server under test, for tests that write bytes and look at what has come back.

Such a test says nothing of time: what it looks at must be there. So the look waits, but not for ever: until the answers that are due have come
complete, or the server has closed the connection, or `LATE_S` is over. That something does not come is believed after `QUIET_S`.
"""

from __future__ import annotations

import re
import select
import socket
import time
from pathlib import Path

LATE_S = 5.0
QUIET_S = 1.0
HEAD_END = b"\r\n\r\n"


class Wire:
    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), LATE_S)
        self._port, self._own_port = port, self._socket.getsockname()[1]
        #: Everything so far.
        self.received = b""
        self.closed = False
        #: When something was sent or received last.
        self.moved = time.monotonic()
        #: One for each request: whether its answer has no body.
        self._bodiless: list[bool] = []

    def send(self, data: bytes) -> None:
        if re.match(rb"[A-Z]+ \S+ HTTP/1\.[01]\r\n", data):
            self._bodiless.append(data.startswith(b"HEAD "))
        try:
            self._socket.sendall(data)
        except ConnectionError:
            self.closed = True  # The server has not waited for the rest.
        self.moved = time.monotonic()

    def wait_for_answers(self, count: int) -> None:
        """Until so many answers are complete, or nothing more can come, or it is late."""
        end = time.monotonic() + LATE_S
        while not self.closed and self._answers() < count and time.monotonic() < end:
            self.receive(end - time.monotonic())

    def wait_for_end(self, seconds: float = QUIET_S) -> bool:
        """Whether the server closes the connection within so many seconds."""
        end = time.monotonic() + seconds
        while not self.closed and time.monotonic() < end:
            self.receive(end - time.monotonic())
        return self.closed

    def wait_for_release(self, seconds: float = QUIET_S) -> bool:
        """Whether the server lets go of its socket within so many seconds: what is sent then is answered with a reset."""
        end = time.monotonic() + seconds
        while self._is_held():
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True

    def _is_held(self) -> bool:
        """Whether a process has the server's end of the connection; one that has none has no inode."""
        ends = [f":{self._port:04X}", f":{self._own_port:04X}"]
        lines = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
        return any(line[1].endswith(ends[0]) and line[2].endswith(ends[1]) and line[9] != "0" for line in lines)

    def receive(self, seconds: float) -> None:
        """What comes next, if anything does in this time."""
        if self.closed or not select.select([self._socket], [], [], max(seconds, 0))[0]:
            return
        try:
            data = self._socket.recv(1 << 20)
        except ConnectionError:
            data = b""
        self.closed = not data
        self.received += data
        self.moved = time.monotonic()

    def end_sending(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._socket.close()
        self.closed = True

    def _answers(self) -> int:
        """How many complete ones have come, those with status 1xx excepted."""
        rest, count = self.received, 0
        while (end := rest.find(HEAD_END)) >= 0:
            head, rest = rest[:end].lower(), rest[end + len(HEAD_END) :]
            line = re.match(rb"http/1\.\d (\d{3})", head)
            if not line:
                return count  # Something else: the test looks at it.
            status = line[1]
            if status.startswith(b"1"):
                continue
            bodiless = self._bodiless[count] if count < len(self._bodiless) else False
            length = re.search(rb"\r\ncontent-length: *(\d+)", head)
            if bodiless or status in (b"204", b"304"):
                pass
            elif b"\r\ntransfer-encoding: chunked" in head:
                last = re.match(rb"(?s).*?(?:^|\r\n)0\r\n\r\n", rest)
                if not last:
                    return count
                rest = rest[last.end() :]
            elif length:
                if len(rest) < int(length[1]):
                    return count
                rest = rest[int(length[1]) :]
            else:
                return count  # It ends with the connection.
            count += 1
        return count
