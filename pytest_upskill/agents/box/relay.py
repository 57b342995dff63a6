"""Forward connections to 127.0.0.1 to the proxy's socket, and run the agent, inside the sandbox.

Called as a script, ``python -I -S relay.py PORT SOCKET STDIN -- PROGRAM ARGUMENT…``. It imports
only what is built into the interpreter: ``socket``, ``subprocess`` and ``threading`` would take
longer to import than all that it does.
"""

from __future__ import annotations

import _socket
import _thread
import os
import sys

_CHUNK = 1 << 16
_SIGNALS = (13, 25)
"""SIGPIPE and SIGXFSZ, which Python ignores, and a program expects not to be ignored."""


def main(arguments: list[str]) -> int:
    """Run the agent, and return its exit status."""
    port, socket_path, stdin_path, _, *program = arguments
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", int(port)))
    listener.listen(64)
    _thread.start_new_thread(_serve, (listener, socket_path))
    stdin = (os.POSIX_SPAWN_OPEN, 0, stdin_path, os.O_RDONLY, 0)
    agent = os.posix_spawn(
        program[0], program, os.environ, file_actions=[stdin], setsigdef=_SIGNALS
    )
    return os.waitstatus_to_exitcode(os.waitpid(agent, 0)[1]) & 0xFF


def _serve(listener: _socket.socket, socket_path: str) -> None:
    while True:
        descriptor, _ = listener._accept()  # type: ignore[attr-defined]  # noqa: SLF001
        client = _socket.socket(fileno=descriptor)
        proxy = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            proxy.connect(socket_path)
        except OSError:
            client.close()
            continue
        client.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
        for ends in ((client, proxy), (proxy, client)):
            _thread.start_new_thread(_pump, ends)


def _pump(source: _socket.socket, target: _socket.socket) -> None:
    try:
        while data := source.recv(_CHUNK):
            target.sendall(data)
        # Only this direction has ended: the reply may still come.
        target.shutdown(_socket.SHUT_WR)
    except OSError:
        for end in (source, target):
            try:  # noqa: SIM105  contextlib would have to be imported
                end.shutdown(_socket.SHUT_RDWR)
            except OSError:
                pass


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
