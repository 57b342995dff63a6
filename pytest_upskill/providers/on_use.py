"""Import an SDK without the packages of it that nobody here uses."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType


@contextmanager
def on_use(*packages: str) -> Iterator[None]:
    """Let packages that are imported meanwhile run once a name is looked up in them.

    :class:`importlib.util.LazyLoader` would run them for their modules too, as it takes looking up
    ``__path__`` for a use.

    Args:
        packages: Full names. Their modules are found as ever; what uses a name of such a package
            sees no difference, at whatever time.
    """
    finder = _Finder(packages)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder(MetaPathFinder):
    def __init__(self, packages: Sequence[str]) -> None:
        self._packages = packages

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._packages:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _OnUse(spec.loader)
        return spec


class _OnUse(Loader):
    """Leaves a module without names until it is used."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._lock = RLock()
        self._running = self._ran = False

    def exec_module(self, module: ModuleType) -> None:
        module.__class__ = _Unused

    def run(self, module: ModuleType) -> None:
        """Run the module, once; whoever else uses it meanwhile waits."""
        with self._lock:
            # Being run by this very thread, it has no further names to give, as in any import
            # that runs in a circle.
            if self._running or self._ran:
                return
            self._running = True
            try:
                self._loader.exec_module(module)
                module.__class__ = ModuleType
                self._ran = True
            finally:
                self._running = False


class _Unused(ModuleType):
    def __getattr__(self, name: str) -> object:
        self._use()
        return self.__getattribute__(name)

    def __dir__(self) -> Iterable[str]:
        self._use()
        return ModuleType.__dir__(self)

    def _use(self) -> None:
        assert self.__spec__ is not None
        assert isinstance(self.__spec__.loader, _OnUse)
        self.__spec__.loader.run(self)
