"""A memory cgroup below this process's own, version 1 or 2, for tests that run a server in it. Not a test itself."""
import os
import pathlib
import re
import time

ROOT = pathlib.Path("/sys/fs/cgroup")


def own_group():
    """Folder of this process's memory cgroup and its version."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return ROOT / "memory" / path.lstrip("/"), 1
    return ROOT / path.lstrip("/"), 2  # its only line, or the last one


class MemoryGroup:
    """Raises OSError where the group cannot be made or has no memory controller."""

    def __init__(self, limit_bytes):
        parent, self.version = own_group()
        self.folder = parent / f"kvasir-memory-test-{os.getpid()}"
        self.folder.mkdir()
        try:
            limit_file = "memory.limit_in_bytes" if self.version == 1 else "memory.max"
            (self.folder / limit_file).write_text(str(limit_bytes))
            if self.version == 2:
                (self.folder / "memory.swap.max").write_text("0")
        except OSError:
            self.folder.rmdir()
            raise

    def enter(self):
        """To be called in the child before it becomes the server."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def num_killed(self):
        events = "memory.oom_control" if self.version == 1 else "memory.events"
        return int(re.search(r"^oom_kill (\d+)", (self.folder / events).read_text(), re.MULTILINE)[1])

    def peak_bytes(self):
        """All that is charged to the group: also cached pages of files, which are given back under pressure."""
        peak = "memory.max_usage_in_bytes" if self.version == 1 else "memory.peak"
        return int((self.folder / peak).read_text())

    def remove(self):
        for _ in range(100):
            try:
                return self.folder.rmdir()
            except OSError:  # the last process has not quite left
                time.sleep(0.05)
