"""Code that attacks the compiler or parser which builds it, and honest code beside it."""

# Attacks read best on lines of their own.
# ruff: noqa: E501, ISC004, Q003

from __future__ import annotations

from collections.abc import Mapping

INCLUDES = {
    "include": '#include "{secret}"',
    "include in angle brackets": "#include <{secret}>",
    "include by macro": '#define P "{secret}"\n#include P',
    "include from elsewhere": '#line 1 "/usr/include/x.h"\n#include "{secret}"',
    "include by a link": '#include "/proc/self/root{secret}"',
    "include in a type": 'typedef struct\n#include "{word}"\n T;\nint f(T *p) {{ return p; }}',
    "include in a message": '_Static_assert(0,\n#include "{quoted}"\n);',
    "include in an initialiser": 'char s[] = {{\n#include "{word}"\n}};',
    "assembler": 'asm(".include \\"{secret}\\"");',
    "assembler in a function": 'void f(void) {{ asm(".include \\"{secret}\\""); }}',
    "bytes": 'asm(".incbin \\"{secret}\\"");\n#error seen',
    "embed": 'char s[] = {{\n#embed "{secret}"\n}};',
    "environment": 'asm(".include \\"/proc/self/environ\\"");',
    "environment of pytest": 'asm(".include \\"/proc/{pid}/environ\\"");\n#error seen',
    "dependency": '#pragma GCC dependency "{secret}"\n#error seen',
    "line": '#line 1 "{secret}"\nint x = y;',
    "line marker": '# 1 "{secret}" 1\nint x = y;',
    "import": '#import "{secret}"',
    "next": '#include_next "{secret}"',
    "precompiled header": '#pragma GCC pch_preprocess "{secret}"',
    "options in a pragma": '#pragma GCC optimize("-fplugin={secret}")\n#pragma GCC target("@{secret}")\n'
    "#error seen",
    "options in a comment": '// nvcc: --options-file "{secret}"\n// {{ dg-options "@{secret}" }}\n#error seen',
}
"""C, C++ and CUDA that would quote a file."""

BUILD_BOMBS = {
    "templates": "template <int N> struct F {{ enum {{ v = F<N - 1>::v }}; }};\nint x = F<9999>::v;",
    "constexpr": "constexpr int f(int n) {{ return n < 2 ? n : f(n - 1) + f(n - 2); }} int a[f(60)];",
    "include itself": "#include __FILE__\n#include __FILE__",
    "parentheses": "int x = " + "(" * 100_000 + ";",
    "errors": "x;\n" * 50_000,
    "comment": "/*" * 250_000,
    "macros": "#define A(x) x x x x x x x x\n#define B(x) A(A(A(A(A(A(A(A(A(x)))))))))\n"
    "int x = 0 B(+1);",
    "object": "char x[1 << 30] = {{1}};",
    "assembler": 'asm(".rept 1000000000\\n.long 1\\n.endr");',
    "space": 'asm(".space 1 << 40, 1");',
    "long line": "#error " + "x" * 500_000,
}
"""C, C++ and CUDA that compilers do not finish."""

PARSE_BOMBS = {
    "parentheses": "(" * 100_000,
    "number": "x = " + "9" * 100_000,
    "nothing": "# nothing",
    "indents": "".join(" " * depth + "if 1:\n" for depth in range(150)),
    "operators": "x = " + "-" * 100_000 + "1",
}
"""Python that is hard to parse, and wrong."""

HONEST: Mapping[str, tuple[str, ...]] = {
    "run": (
        "import tempfile, shutil, os\nwith tempfile.TemporaryDirectory() as t:\n"
        "    os.mkdir(t + '/a'); open(t + '/a/b', 'w').close(); shutil.copytree(t + '/a', t + '/c')",
        "import asyncio\nassert asyncio.run(asyncio.sleep(0, 7)) == 7",
        "import subprocess\nassert subprocess.check_output(['echo', 'x']) == b'x\\n'",
        "import threading\nt = threading.Thread(target=print); t.start(); t.join()",
        "import json, decimal, datetime, re, random, uuid, logging, sqlite3, zlib",
        "import os\npid = os.fork()\nif not pid: os._exit(3)\nassert os.waitpid(pid, 0)[1] == 768",
        "import socket\na, b = socket.socketpair(); a.sendall(b'x'); assert b.recv(1) == b'x'",
        "import os\nopen('../tmp/f', 'w').write('x'); os.chmod('../tmp/f', 0o600); os.utime('../tmp/f')",
        "import signal, time\nsignal.signal(14, lambda *_: None); signal.alarm(1); signal.pause()",
        "import mmap, pickle, csv, io, pathlib\nassert pathlib.Path('.').exists()",
    ),
    "c": ("#include <stdio.h>\nint main(void) { return puts(\"x\"); }", "int x;"),
    "cpp": ("#include <vector>\n#include <string>\nstd::vector<std::string> x;", "int x;"),
    "cuda": ("#include <cuda_fp16.h>\n__global__ void k(half *x) { x[0] = 1; }",),
    "python": ("import os\ndef f(x: int) -> int:\n    return x", "print(1)"),
}  # fmt: skip
