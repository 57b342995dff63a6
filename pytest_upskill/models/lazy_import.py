"""Lazy import of packages of an SDK that most runs do not use."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType


@contextmanager
def lazy_import(*packages: str) -> Iterator[None]:
    """Defer the execution of packages that are imported in the block until their first use.

    The first use is the look-up of a name in the package. :class:`importlib.util.LazyLoader` would
    execute them for the import of a submodule too, which looks up ``__path__``.

    Args:
        packages: Full names of the packages. Their submodules are imported as usual.
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
    """A loader that executes a module on its first use."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._lock = RLock()
        self._running = self._ran = False

    def exec_module(self, module: ModuleType) -> None:
        module.__class__ = _Unused

    def run(self, module: ModuleType) -> None:
        """Execute the module once; other threads that use it wait."""
        with self._lock:
            # If this thread is executing it already, this is a circular import, in which further
            # names are not available.
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
