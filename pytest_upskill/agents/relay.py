"""Inside the sandbox: pass connections to 127.0.0.1 on to the proxy's socket, and run the agent.

Called as a script, ``python -I -S relay.py PORT SOCKET STDIN -- PROGRAM ARGUMENT…``. It imports the
standard library only.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading

_CHUNK = 1 << 16


def main(arguments: list[str]) -> int:
    """Run the agent, and return its exit status."""
    port, path, given, _, *program = arguments
    listener = socket.create_server(("127.0.0.1", int(port)), backlog=64)
    threading.Thread(target=_serve, args=(listener, path), daemon=True).start()
    with open(given, "rb") as stdin:  # noqa: PTH123 - starts faster without pathlib
        return subprocess.call(program, stdin=stdin)  # noqa: S603 - to run it is the purpose


def _serve(listener: socket.socket, path: str) -> None:
    while True:
        client, _ = listener.accept()
        proxy = socket.socket(socket.AF_UNIX)
        try:
            proxy.connect(path)
        except OSError:
            client.close()
            continue
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for ends in ((client, proxy), (proxy, client)):
            threading.Thread(target=_pump, args=ends, daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(_CHUNK):
            target.sendall(data)
    except OSError:
        pass
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
