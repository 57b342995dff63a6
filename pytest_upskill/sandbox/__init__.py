"""Run untrusted programs in a sandbox.

`run.py` is the entry: `workspace` makes and removes the folder of a program, `Sandbox` finds a
level that works, starts the program, watches and stops it.
What a program may do is set in these modules:

- files, network and user: `confinement.py` for bubblewrap, `launcher.py` for Landlock
- system calls: `seccomp.py`
- time, memory, processes, output and disk: `limits.py`

`launcher.py` applies them in the new process, before the program starts.
"""
