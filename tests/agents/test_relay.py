"""The relay between an agent in its sandbox and the proxy outside."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from pathlib import Path

from pytest_upskill.agents import relay

CLIENT = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as end:
    end.sendall(b"all of it")
    end.shutdown(socket.SHUT_WR)
    print(end.recv(100).decode())
"""


def test_a_reply_comes_after_the_agent_has_ended_its_request(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as proxy, socket.create_server(("127.0.0.1", 0)) as free:
        proxy.bind(str(tmp_path / "proxy"))
        proxy.listen()
        port = str(free.getsockname()[1])
        free.close()
        threading.Thread(target=_reply, args=(proxy,), daemon=True).start()
        inside = [str(Path(sys.executable).resolve()), "-I", "-S"]
        program = [
            *inside,
            relay.__file__,
            port,
            str(tmp_path / "proxy"),
            "/dev/null",
            "9999",
            "--",
        ]

        ended = subprocess.run(
            [*program, *inside, "-c", CLIENT, port], capture_output=True, text=True, check=True
        )

    assert ended.stdout == "got all of it\n"


def _reply(proxy: socket.socket) -> None:
    end, _ = proxy.accept()
    with end:
        got = b""
        while data := end.recv(100):
            got += data
        end.sendall(b"got " + got)
