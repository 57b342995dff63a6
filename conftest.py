"""What the project's own tests and its example skills need from the rootdir."""

pytest_plugins = ["pytester"]
