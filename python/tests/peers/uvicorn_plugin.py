"""A plugin of pytest for uvicorn's own tests: what they start or drive is a server in its own process, reached by a socket.

Their names are looked up when a test runs, so that they are replaced in its module: `run_server`, `Server`, `get_connected_protocol` and
`MockWebSocketConnection`. Each stand-in has what the tests use of the original. What cannot be asked of a server from outside raises `Inside`.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from bridge import PATIENCE, Bridge
from process import Inside, Options, Process, free_port, relayed
from wire import LATE_S, QUIET_S, Wire

# The tests use of the one what the other has as well.
sys.modules.setdefault("httpx2", httpx)

#: The two sides of their matrix that are the same for another server.
ONE_OF = {"http_protocol_cls": "httptools"}
#: By then any server has given up a peer that answers no close frame.
GIVES_UP_S = 30.0
_processes: list[Process] = []
_bridges: list[Bridge] = []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if not _is_wanted(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
    stand_ins = {"run_server": run_server, "Server": Server, "get_connected_protocol": get_connected_protocol,
                 "MockWebSocketConnection": MockWebSocketConnection}
    for module in {item.module for item in items if isinstance(item, pytest.Function)}:
        for name, stand_in in stand_ins.items():
            if hasattr(module, name):
                setattr(module, name, stand_in)


def _is_wanted(item: pytest.Item) -> bool:
    identifiers = item.name.partition("[")[2].rstrip("]").split("-")
    names = getattr(item, "fixturenames", [])
    return all(wanted in identifiers for name, wanted in ONE_OF.items() if name in names)


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    yield
    for process in _processes:
        process.kill()
    for bridge in _bridges:
        bridge.abandon()
    _processes.clear()
    _bridges.clear()


#: By the names of their classes.
_IMPLEMENTATIONS = {"WSProtocol": "wsproto", "WebSocketsSansIOProtocol": "websockets-sansio"}


def _options(config: Any) -> Options:
    chosen = config.ws if isinstance(config.ws, str) else _IMPLEMENTATIONS[config.ws.__name__]
    # Only their command line does not have it.
    own = () if chosen == "none" else ("--ws", chosen)
    # Both nothing and zero stand for no pings.
    return Options(config.root_path, config.timeout_keep_alive, config.ws_max_size, config.ws_ping_interval or None, config.ws_ping_timeout,
                   bool(config.ws_ping_interval), chosen != "none", config.ws_per_message_deflate, config.date_header, config.server_header, own)


def _bridge(config: Any, state: dict[str, Any] | None = None) -> Bridge:
    """For the application as it is, without what uvicorn puts around it."""
    config.load()
    application = config.app
    if config.interface == "asgi2":
        two_steps = application

        def application(scope: Any, receive: Any, send: Any) -> Any:
            return two_steps(scope)(receive, send)

    bridge = Bridge(application, state)
    _bridges.append(bridge)
    return bridge


def _process(bridge: Bridge, port: int, config: Any, lifespan: str) -> Process:
    process = relayed(bridge.path, port, _options(config), lifespan)
    _processes.append(process)
    return process


# A server that a test runs


class Server:
    def __init__(self, config: Any) -> None:
        self._config = config
        self.should_exit = False

    async def start(self) -> None:
        self._bridge = _bridge(self._config)
        self._bridge.start()
        self._process = _process(self._bridge, self._config.port, self._config, "off" if self._config.lifespan == "off" else "on")
        # The application's lifespan runs in this loop.
        while not self._process.accepts():
            await asyncio.sleep(0.01)

    async def shutdown(self) -> None:
        self._process.ask_to_end()
        end = time.monotonic() + 2 * PATIENCE
        while not self._process.has_ended():
            if time.monotonic() > end:
                raise RuntimeError(f"the server does not end: {self._process.said()}")
            await asyncio.sleep(0.01)
        await self._bridge.close()

    def run(self) -> None:
        """Until `should_exit`, from a thread without a loop."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        await self.start()
        while not self.should_exit:
            await asyncio.sleep(0.01)
        await self.shutdown()

    @property
    def server_state(self) -> Any:
        raise Inside("the server's own record of its connections")


@contextlib.asynccontextmanager
async def run_server(config: Any, sockets: Any = None) -> AsyncIterator[Server]:
    server = Server(config)
    await server.start()
    try:
        yield server
    finally:
        await server.shutdown()


# A connection that a test of HTTP drives


def get_connected_protocol(app: Any, http_protocol_cls: Any, lifespan: Any = None, **kwargs: Any) -> Protocol:
    """It is called in a loop, but does not wait in it: the server is up, and is connected to, when it returns."""
    from uvicorn.config import Config

    config = Config(app=app, **kwargs)
    bridge = _bridge(config, lifespan.state if lifespan else None)
    bridge.start()
    tokens = str(bridge.tokens).replace("'", '"')
    process = _process(bridge, free_port(), config, tokens if bridge.tokens else "off")
    process.wait_until_up()
    return Protocol(Wire(process.port), bridge, process)


class Protocol:
    ws_protocol_class: Any = None

    def __init__(self, wire: Wire, bridge: Bridge, process: Process) -> None:
        self._wire, self._bridge, self._process = wire, bridge, process
        self.transport = Transport(wire)
        self.loop = Loop(self.transport, bridge, wire)

    def data_received(self, data: bytes) -> None:
        self._wire.send(data)
        self.transport.due = True

    def eof_received(self) -> None:
        self._wire.end_sending()

    def connection_lost(self, error: Exception | None) -> None:
        self._wire.close()

    def shutdown(self) -> None:
        self._process.ask_to_end()

    @property
    def scope(self) -> Any:
        return self._bridge.runs[-1].scope

    @property
    def timeout_keep_alive_task(self) -> Any:
        raise Inside("the timer of an idle connection")


class Transport:
    """What comes back."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._cleared = 0
        #: So many answers belong to calls of the application that have ended.
        self.answers = 0
        #: Something was sent since: the server may have an answer of its own to it.
        self.due = False

    @property
    def buffer(self) -> bytes:
        self._wire.wait_for_answers(self.answers + self.due)
        self._wire.receive(0)
        return self._wire.received[self._cleared :]

    def clear_buffer(self) -> None:
        self._cleared += len(self.buffer)

    def is_closing(self) -> bool:
        self._wire.wait_for_answers(self.answers)
        return self._wire.wait_for_end()

    #: A server that does not read for a while does nothing that shows.
    read_paused = False


class Loop:
    """The calls of the application."""

    def __init__(self, transport: Transport, bridge: Bridge, wire: Wire) -> None:
        self._transport, self._bridge, self._wire = transport, bridge, wire

    async def run_one(self) -> None:
        """Wait for the next one, and for its answer."""
        await self._bridge.next_run()
        self._transport.answers += 1
        self._transport.due = False
        # Not in the loop's time: nothing of the application is left to run.
        self._wire.wait_for_answers(self._transport.answers)

    def run_later(self, with_delay: float) -> None:
        """Let a connection be idle for so many seconds, and a moment longer where it is to be closed by then."""
        while not self._wire.closed and (left := self._wire.moved + with_delay - time.monotonic()) > 0:
            self._wire.wait_for_end(left)


# A socket that a test of WebSockets drives


class MockWebSocketConnection:
    #: A server that does not read for a while does nothing that shows.
    reading_paused = False

    def __init__(self, app: Any, ws_protocol_cls: Any, http_protocol_cls: Any, close_timeout: float = 10.0) -> None:
        from uvicorn.config import Config
        from websockets.client import ClientProtocol
        from websockets.uri import parse_uri

        self._config = Config(app=app, ws=ws_protocol_cls, lifespan="off")
        self._client = ClientProtocol(parse_uri("ws://127.0.0.1/"))
        #: Where the server is not to wait for a peer's close frame it is seen to give up by itself.
        self._end_limit = QUIET_S if close_timeout else GIVES_UP_S
        self._staged = b""
        self._taken = 0
        self._is_over = False

    async def __aenter__(self) -> MockWebSocketConnection:
        self._bridge = _bridge(self._config)
        self._bridge.start()
        self._process = _process(self._bridge, free_port(), self._config, "off")
        self._process.wait_until_up()
        self._wire = Wire(self._process.port)
        self._client.send_request(self._client.connect())
        self._stage(True)
        # The handshake needs the application.
        end = time.monotonic() + LATE_S
        while b"\r\n\r\n" not in self._wire.received and time.monotonic() < end:
            await asyncio.sleep(0.005)
            self._wire.receive(0)
        # What has come behind it is not looked at before the test does.
        self._taken = self._wire.received.find(b"\r\n\r\n") + 4
        self._client.receive_data(self._wire.received[: self._taken])
        self._client.events_received()
        return self

    async def __aexit__(self, *error: object) -> None:
        self.connection_lost()

    async def app_finished(self) -> None:
        await self._bridge.next_run()

    def send_text(self, text: str, flush: bool = True) -> None:
        self._client.send_text(text.encode())
        self._stage(flush)

    def send_ping(self, flush: bool = True) -> None:
        self._client.send_ping(b"")
        self._stage(flush)

    def send_close(self, flush: bool = True) -> None:
        self._client.send_close(1000)
        self._stage(flush)

    def reply_to_server_close(self, flush: bool = True) -> None:
        """Wait for the server's close frame; the client then answers by itself."""
        end = time.monotonic() + LATE_S
        while self._client.close_rcvd is None and not self._wire.closed and time.monotonic() < end:
            self._wire.receive(end - time.monotonic())
            self._take()
        self._stage(flush)

    def receive_text(self) -> list[str]:
        from websockets.frames import Frame, Opcode

        self._wire.receive(QUIET_S)
        return [bytes(event.data).decode() for event in self._take() if isinstance(event, Frame) and event.opcode == Opcode.TEXT]

    def flush(self) -> None:
        data, self._staged = self._staged, b""
        if data:
            self._wire.send(data)

    def connection_lost(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._wire.close()

    def shutdown(self) -> None:
        self._process.ask_to_end()
        self._end_limit = GIVES_UP_S

    @property
    def transport_closed(self) -> bool:
        """Whether the server has ended the connection.  Before both close frames it may have ended its sending, but has to read on: what the client
        sends must not be answered with a reset."""
        if self._client.close_rcvd and self._client.close_sent:
            return self._wire.wait_for_end()
        return self._wire.wait_for_release(self._end_limit)

    @property
    def awaiting_close_reply(self) -> bool:
        return not self._is_over and not self.transport_closed

    def pause_writing(self) -> None:
        raise Inside("the server's transport that takes nothing more")

    def resume_writing(self) -> None:
        raise Inside("the server's transport that takes something again")

    def _stage(self, flush: bool) -> None:
        self._staged += b"".join(self._client.data_to_send())
        if flush:
            self.flush()

    def _take(self) -> list[Any]:
        data, self._taken = self._wire.received[self._taken :], len(self._wire.received)
        if data:
            self._client.receive_data(data)
        return self._client.events_received()
