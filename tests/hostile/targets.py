"""What the attacks are aimed at: secrets, files, sockets and a process, made for them."""

from __future__ import annotations

import ctypes
import os
import platform
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from unittest import mock

from tests.hostile.answers import SECRET

_ADD_KEY = (248 if platform.machine() == "x86_64" else 217,)


FILES = {
    "secret": f"{SECRET} = 1;\n{SECRET}\n",
    "word": SECRET,
    "quoted": f'"{SECRET}"',
    "file": "untouched",
}


def write_files(folder: Path) -> None:
    """Make the files again as they were: an attack may have changed or removed them."""
    for name, content in FILES.items():
        (folder / name).write_text(content)
        (folder / name).chmod(0o600)
        os.utime(folder / name, (2, 2))


@contextmanager
def aims() -> Iterator[dict[str, object]]:
    """Make what the attacks are aimed at."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hostile-")))
        write_files(folder)
        with suppress(OSError):
            os.setxattr(folder / "secret", "user.secret", SECRET.encode())
        stack.enter_context(mock.patch.dict(os.environ, {"OPENAI_API_KEY": SECRET}))
        # A process whose environment and command line hold the secret, as those of others may.
        command = [sys.executable, "-c", "import time; time.sleep(3600)", SECRET]
        victim = stack.enter_context(subprocess.Popen(command, start_new_session=True))
        stack.callback(victim.kill)
        libc = ctypes.CDLL(None)
        libc.shmat.restype = ctypes.c_void_p
        descriptor = os.open(folder / "secret", os.O_RDONLY)
        stack.callback(os.close, descriptor)
        shared = Path("/dev/shm", folder.name)
        with suppress(OSError):
            shared.write_text(SECRET)
        stack.callback(shared.unlink, missing_ok=True)
        memory = libc.shmget(0, 4096, 0o1600)
        ctypes.memmove(libc.shmat(memory, None, 0), SECRET.encode() + b"\0", len(SECRET) + 1)
        stack.callback(libc.shmctl, memory, 0, None)
        libc.syscall(*_ADD_KEY, b"user", b"upskill-hostile", SECRET.encode(), len(SECRET), -3)
        yield {
            **{name: str(folder / name) for name in FILES},
            "folder": str(folder),
            "marker": SECRET,
            "pid": os.getpid(),
            "victim": victim.pid,
            "memory": memory,
            "descriptor": descriptor,
            "shared": shared.name,
            "handle": _handle(folder / "secret"),
            "temporary": tempfile.gettempdir(),
            **_serve(stack, folder),
        }


def _handle(file: Path) -> bytes:
    """Return what `open_by_handle_at` needs to open a file; nonsense if its disk has no handles."""
    handle, mount = ctypes.create_string_buffer(b"\x80", 136), ctypes.c_int()
    ctypes.CDLL(None).name_to_handle_at(-100, bytes(file), handle, ctypes.byref(mount), 0)
    return handle.raw


def _serve(stack: ExitStack, folder: Path) -> dict[str, object]:
    """Serve the secret on sockets of each kind."""
    datagrams = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    datagrams.bind(str(folder / "datagrams"))
    streams = {
        "port": socket.create_server(("127.0.0.1", 0)),
        "unix": socket.socket(socket.AF_UNIX),
        "abstract": socket.socket(socket.AF_UNIX),
    }
    streams["unix"].bind(str(folder / "unix"))
    streams["abstract"].bind(f"\0{folder.name}")
    for server in streams.values():
        stack.enter_context(server).listen()
        stack.callback(server.shutdown, socket.SHUT_RDWR)  # ends the thread's accept()
        threading.Thread(target=_tell, args=(server,), daemon=True).start()
    return {
        "datagrams": str(folder / "datagrams"),
        "port": streams["port"].getsockname()[1],
        "unix": str(folder / "unix"),
        "abstract": f"\0{folder.name}",
    }


def _tell(server: socket.socket) -> None:
    with suppress(OSError):
        while True:
            connection, _ = server.accept()
            with connection:
                connection.sendall(SECRET.encode())


def state(targets: Mapping[str, object]) -> object:
    """Return what must be the same after an attack as before."""
    folder = Path(str(targets["folder"]))
    files = [
        (path.name, path.lstat().st_mode, path.lstat().st_mtime_ns, path.lstat().st_size)
        for path in sorted(folder.iterdir())
    ]
    process = Path(f"/proc/{targets['victim']}")
    victim = (process / "stat").read_text().rpartition(")")[2].split()
    choice = (process / "oom_score_adj").read_text()
    processors = os.sched_getaffinity(int(str(targets["victim"])))
    return files, victim[0] in {"T", "Z"}, victim[16], choice, processors
