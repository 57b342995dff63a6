"""Read the names of the kernels in a cubin, an ELF file with GPU machine code."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

MAGIC = b"\x7fELF"

# https://refspecs.linuxfoundation.org/elf/gabi4+/ch4.eheader.html, 64 bits, little-endian. The bit
# that marks a kernel is CUDA's own; nvdisasm and readelf show it as STO_CUDA_ENTRY and <other>: 10.
_SECTIONS_AT, _SECTION_COUNT_AT = 40, 60
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOL_TABLE = 2
_FUNCTION = 2
_TYPE_BITS = 0x0F
_ENTRY = 0x10
_UNDEFINED = 0


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


def kernels(cubin: bytes) -> list[str]:
    """Return the linker names of the kernels with machine code in a cubin.

    Raises:
        ValueError: The bytes are not a valid 64-bit ELF file.
    """
    if not cubin.startswith(MAGIC):
        raise ValueError("not an ELF file")
    try:
        return list(_kernels(cubin))
    except (struct.error, IndexError) as error:
        raise ValueError(f"damaged ELF file: {error}") from None


def _kernels(cubin: bytes) -> Iterator[str]:
    (start,) = struct.unpack_from("<Q", cubin, _SECTIONS_AT)
    (count,) = struct.unpack_from("<H", cubin, _SECTION_COUNT_AT)
    sections = [
        _Section(*_SECTION.unpack_from(cubin, start + _SECTION.size * index))
        for index in range(count)
    ]
    for table in sections:
        if table.kind == _SYMBOL_TABLE:
            names = sections[table.link].offset
            symbols = cubin[table.offset : table.offset + table.size]
            for name, info, other, section, _value, size in _SYMBOL.iter_unpack(symbols):
                is_function = info & _TYPE_BITS == _FUNCTION
                if is_function and other & _ENTRY and section != _UNDEFINED and size:
                    first = names + name
                    yield cubin[first : cubin.index(0, first)].decode("utf-8", "replace")
