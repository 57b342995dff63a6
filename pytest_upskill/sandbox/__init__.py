"""Run untrusted programs in a sandbox.

`run.py` is the entry: `Sandbox` finds a level that works, starts a program, watches and stops it.
What a program may do is set in these modules:

- files and network: `confinement.py` for bubblewrap's mounts and namespaces, `landlock.py`
- system calls: `syscalls.py` lists them, `seccomp.py` makes the filter of them
- time, memory, processes and output: `limits.py`; the size of its folder: `workspace.py`
- user and privileges: `own_user.py`, `privileges.py`

`launcher.py` applies them in the new process, before the program starts.
"""
