"""Nodes for launchers: an sshd of the test's own on loopback, under several names.

Nothing of the user's ssh is read or changed: keys, configuration and known hosts lie in the test's folder, and an `ssh` in
front of PATH uses them.
"""
import os
import pathlib
import pwd
import shutil
import socket

import subprocess
import time

ROOT = pathlib.Path(__file__).parent.parent.parent
PATIENCE = 20 + float(os.environ.get("SCENARIO_SLACK", "2"))


def sshd_program():
    """scripts/test unpacks the package there without installing it: an installed one is a service that listens."""
    places = [ROOT / "build" / "openssh" / "usr" / "sbin" / "sshd", pathlib.Path("/usr/sbin/sshd")]
    return next(str(place) for place in places if place.exists())


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def make_where_it_leaves_its_rights():
    """The user and the folder that installing the package makes."""
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    try:
        pwd.getpwnam("sshd")
    except KeyError:
        subprocess.run(["useradd", "--system", "--no-create-home", "--home-dir", "/run/sshd", "--shell", "/usr/sbin/nologin", "sshd"],
                       check=True)


class Nodes:
    """`names` lead to one sshd; those in `other` to one that finds other files than the caller does: `sed` changes commands."""

    def __init__(self, folder, names, other=(), sed=""):
        self.folder = pathlib.Path(folder)
        self.servers = []
        self._keys()
        port = self._serve("")
        config = [self._host(" ".join(names), port)]
        if other:
            config.append(self._host(" ".join(other), self._serve(sed)))
        config.append(f"Host gone\n  HostName 127.0.0.1\n  Port {free_port()}\n")
        (self.folder / "ssh_config").write_text("".join(config))
        (self.folder / "bin").mkdir()
        program = self.folder / "bin" / "ssh"
        program.write_text(f'#!/bin/sh\necho "$@" >> {self.folder}/calls\nexec {shutil.which("ssh")} -F {self.folder}/ssh_config "$@"\n')
        program.chmod(0o755)

    def _keys(self):
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name], check=True)
        shutil.copy(self.folder / "user.pub", self.folder / "authorized")

    def _host(self, names, port):
        return (f"Host {names}\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {self.folder}/user\n  IdentitiesOnly yes\n"
                f"  UserKnownHostsFile {self.folder}/known\n  StrictHostKeyChecking no\n  LogLevel ERROR\n  ControlMaster no\n")

    def _serve(self, sed):
        port = free_port()
        force = ""
        if sed:
            script = self.folder / "other"
            script.write_text(f'#!/bin/sh\neval "$(printf %s "$SSH_ORIGINAL_COMMAND" | sed \'{sed}\')"\n')
            script.chmod(0o755)
            force = f"ForceCommand {script}\n"
        config = self.folder / f"sshd_config.{port}"
        config.write_text(f"Port {port}\nListenAddress 127.0.0.1\nHostKey {self.folder}/host\nPidFile none\nUsePAM no\nStrictModes no\n"
                          f"AuthorizedKeysFile {self.folder}/authorized\nPasswordAuthentication no\nMaxStartups 50\n{force}")
        if os.getuid() == 0:
            make_where_it_leaves_its_rights()
        with open(self.folder / "sshd.log", "ab") as log:
            self.servers.append(subprocess.Popen([sshd_program(), "-D", "-e", "-f", str(config)], stdin=subprocess.DEVNULL, stderr=log))
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    return port
            time.sleep(0.05)
        raise AssertionError((self.folder / "sshd.log").read_text())

    def environment(self, **more):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(("DSHANG_", "LD_PRELOAD", "OMPI_", "DS_ENV_FILE", "PDSH_", "RANK", "WORLD_SIZE"))}
        env["PATH"] = f"{self.folder}/bin{os.pathsep}{env['PATH']}"
        return dict(env, **more)

    def called(self):
        """Lines of arguments with which ssh was called."""
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def close(self):
        for server in self.servers:
            server.terminate()
            server.wait(PATIENCE)
