"""A worker of pytest-xdist that the server of `tests.forked` forks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from execnet import gateway_base

from tests.forked import ADDRESS, WORKER, Forked, server_address


class ForkedWorker(gateway_base.Popen2IO):
    """Stands in for the process that execnet would start."""

    def __init__(self, _command: list[str], execmodel: Any) -> None:
        stdin, ours_out = os.pipe()
        ours_in, stdout = os.pipe()
        # Workers of the whole suite, which start others, get to know their server.
        environment = os.environ | {ADDRESS: server_address()}
        self._process = Forked([WORKER], Path.cwd(), environment, [stdin, stdout, 2])
        os.close(stdin)
        os.close(stdout)
        super().__init__(os.fdopen(ours_out, "wb"), os.fdopen(ours_in, "rb"), execmodel)

    def wait(self) -> int | None:
        return self._process.wait()

    def kill(self) -> None:
        self._process.kill()
