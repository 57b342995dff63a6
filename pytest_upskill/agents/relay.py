"""Forward connections to 127.0.0.1 to the proxy's socket, and run the agent, inside the sandbox.

Called as a script, ``python -I -S relay.py PORT SOCKET STDIN PROCESSES -- PROGRAM ARGUMENT…``.
"""

import os
import resource
import socket
import sys
import threading
from contextlib import suppress

_CHUNK = 1 << 16
_SIGNALS = (13, 25)
"""SIGPIPE and SIGXFSZ, which Python ignores, and a program expects not to be ignored."""


def main(arguments: list[str]) -> int:
    """Run the agent, and return its exit status."""
    port, socket_path, stdin_path, processes, _, *program = arguments
    # A fork bomb would leave the watcher outside no time to end it.
    resource.setrlimit(resource.RLIMIT_NPROC, (int(processes), int(processes)))
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", int(port)))
    listener.listen(64)
    threading.Thread(target=_serve, args=(listener, socket_path), daemon=True).start()
    stdin = (os.POSIX_SPAWN_OPEN, 0, stdin_path, os.O_RDONLY, 0)
    agent = os.posix_spawn(
        program[0], program, os.environ, file_actions=[stdin], setsigdef=_SIGNALS
    )
    return os.waitstatus_to_exitcode(os.waitpid(agent, 0)[1]) & 0xFF


def _serve(listener: socket.socket, socket_path: str) -> None:
    while True:
        client, _ = listener.accept()
        proxy = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            proxy.connect(socket_path)
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
        # Only this direction has ended: the reply may still come.
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
