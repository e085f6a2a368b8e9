"""A folder with a Debian in it as a running system: systemd is its first process, the network is the host's. Not a test
itself."""
import pathlib
import subprocess
import time

from clean_root import run

BOOT_S = 120


class BootedRoot:
    """Its messages while it boots go to `console`."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.console = self.root.with_suffix(".console")
        self.process = None

    def boot(self):
        with open(self.console, "wb") as console:
            self.process = subprocess.Popen(
                ["systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", "--kill-signal=SIGRTMIN+4",
                 "-D", str(self.root)], stdin=subprocess.DEVNULL, stdout=console, stderr=console)
        self.first = self.await_first()
        deadline = time.monotonic() + BOOT_S
        while self.inside_try("systemctl", "is-system-running").stdout.strip() not in ("running", "degraded"):
            self.check_alive(deadline)

    def power_off(self):
        if self.process is None:
            return
        if self.process.poll() is None:
            self.inside_try("systemctl", "poweroff")
        try:
            self.process.wait(BOOT_S)
        finally:
            self.process.kill()

    def await_first(self):
        """The number that the host has for its process 1."""
        deadline = time.monotonic() + BOOT_S
        while True:
            children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            for child in children:
                if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == "systemd":
                    return child
            self.check_alive(deadline)

    def check_alive(self, deadline):
        if self.process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"it did not boot: {self.console.read_text(errors='replace')[-2000:]}")
        time.sleep(0.05)

    def command(self, *command):
        return ["nsenter", "--target", self.first, "--mount", "--uts", "--ipc", "--pid", "--cgroup", "--root", "--wd",
                "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *map(str, command)]

    def inside_try(self, *command):
        return subprocess.run(self.command(*command), capture_output=True, text=True)

    def inside(self, *command):
        return run(*self.command(*command))

    def shows(self, unit, *properties):
        """systemd's own words for them, in order."""
        shown = self.inside("systemctl", "show", unit, *[f"--property={name}" for name in properties])
        values = dict(line.split("=", 1) for line in shown.splitlines())
        return [values[name] for name in properties]

    def await_shown(self, unit, name, wanted):
        deadline = time.monotonic() + BOOT_S
        while (found := self.shows(unit, name)[0]) != wanted:
            if time.monotonic() > deadline:
                raise AssertionError(f"{name} of {unit} is {found}, not {wanted}:\n{self.journal(unit)}")
            time.sleep(0.05)

    def journal(self, unit):
        return self.inside_try("journalctl", "--no-pager", "--output=cat", f"--unit={unit}").stdout
