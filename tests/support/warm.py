"""A Python that has already imported what the commands of Scrapy need: its programs are forks of it.

So each is a process of its own, as a user's is, and starts in a tenth of the time.  The folder that `programs` gives has
a ``python`` (``-m MODULE``, ``-c CODE`` or a file) and a ``scrapy`` that take the place of the true ones: they hand
arguments, environment, working directory, standard streams and signals over to the fork, and end as it ends.
Only what an interpreter reads at its start, such as PYTHONHASHSEED, is not heeded; and a program that ends well is not
taken apart, module by module.
"""

import atexit
import gc
import marshal
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NoReturn

#: After so many new objects Python looks for garbage, and not after 700: a crawl makes a hundred times as many.
GARBAGE = 20_000
#: What takes the place of a program.  It imports only what is built in, since `socket`, `signal` and `os` take longer than
#: all else that it does.
PROGRAM = """#!{python} -IS
import _signal, _socket, marshal, posix, sys
line = _socket.socket(_socket.AF_UNIX)
line.connect({address!r})
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
line.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
call = marshal.dumps((sys.argv, posix.getcwd(), posix.environ))
line.sendall(len(call).to_bytes(8, "big") + call)
for number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP):
    _signal.signal(number, lambda number, frame: line.sendall(bytes([number])))
ended = line.recv(2)
if len(ended) < 2:
    sys.exit("The Python that is forked has gone")
status = int.from_bytes(ended, "big", signed=True)
if status < 0:
    _signal.signal(-status, _signal.SIG_DFL)
    posix.kill(posix.getpid(), -status)
posix._exit(status)
"""


@cache
def programs() -> Path:
    """The folder of the programs; their Python lives as long as this process, whose forks use it, too."""
    folder = Path(tempfile.mkdtemp(prefix="shingleback-"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "line"))
        listener.listen(64)
        server = subprocess.Popen(
            [sys.executable, __file__, str(listener.fileno())],
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
    text = PROGRAM.format(python=os.path.realpath(sys.executable), address=str(folder / "line"))
    for name in ("python", "scrapy"):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)

    @atexit.register
    def end(owner: int = os.getpid()) -> None:
        if os.getpid() == owner:
            server.kill()
            server.communicate()
            shutil.rmtree(folder)

    return folder


def python() -> str:
    """The program that takes the place of `sys.executable`."""
    return str(programs() / "python")


def start(*arguments: str) -> socket.socket:
    """Starts a fork without a program that stands for it.

    A byte that is sent over the line is a signal to the fork; when this has ended, `ended` reads how.  With the line,
    the fork is killed.
    """
    line = socket.socket(socket.AF_UNIX)
    line.connect(str(programs() / "line"))
    socket.send_fds(line, [b"."], [0, 1, 2])
    call = marshal.dumps((arguments, os.getcwd(), dict(os.environb)))
    line.sendall(len(call).to_bytes(8, "big") + call)
    return line


def ended(line: socket.socket) -> int:
    """The exit status of a fork, or minus the number of the signal that ended or stopped it; waits for it."""
    told = line.recv(2)
    assert len(told) == 2, "the Python that is forked has gone"
    return int.from_bytes(told, "big", signed=True)


# --- The Python that is forked ------------------------------------------------------------------------


def serve(listener: socket.socket) -> list[str]:
    """Forks for each program that asks; returns only in these forks, with the arguments."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        line, _ = listener.accept()
        with line:
            if os.fork():
                continue
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            streams = socket.recv_fds(line, 1, 3)[1]
            size = int.from_bytes(
                line.recv(8, socket.MSG_WAITALL), "big"
            )  # what follows the call is for `keep`
            arguments, folder, environment = marshal.loads(line.recv(size, socket.MSG_WAITALL))
            if child := os.fork():
                for stream in streams:
                    os.close(stream)
                keep(line, child)
        os.chdir(folder)
        os.environb.clear()
        os.environb.update(environment)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        return arguments
    os._exit(0)  # whoever has started this process is gone


def keep(line: socket.socket, child: int) -> NoReturn:
    """Passes signals on to a fork, and tells that it has stopped, and how it ended.  A program that was killed takes its fork along."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    while not (end := os.waitpid(child, os.WNOHANG | os.WUNTRACED))[0] or os.WIFSTOPPED(end[1]):
        if end[0]:
            line.sendall((-signal.SIGSTOP).to_bytes(2, "big", signed=True))
            continue
        ready = select.select([line, woken], [], [])[0]
        if woken in ready:
            os.read(woken, 64)
        if line in ready:
            number = line.recv(1)
            os.kill(child, number[0] if number else signal.SIGKILL)
    status = os.waitstatus_to_exitcode(end[1])
    with suppress(OSError):
        line.sendall(status.to_bytes(2, "big", signed=True))
    os._exit(0)


def begin(program: str, *arguments: str) -> None:
    """Does what the interpreter does at its start, and runs the program."""
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(":"))
    if os.environ.get("PYTHONWARNINGS") == "ignore":
        warnings.simplefilter("ignore")
    sys.path[0] = os.getcwd()
    if Path(program).name == "scrapy":
        from scrapy.cmdline import execute

        sys.argv = [program, *arguments]
        sys.exit(execute())
    elif arguments[0] == "-m":
        sys.argv = [*arguments[1:]]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(arguments[1], vars(main))  # noqa: S102
    else:
        sys.argv = [*arguments]
        sys.path[0] = str(Path(arguments[0]).parent.absolute())
        runpy.run_path(arguments[0], run_name="__main__")


def leave(status: int) -> NoReturn:
    """Ends as an interpreter does, but for taking all modules apart, which lasts longer than most programs."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[2])
    runpy.run_path(str(Path(__file__).with_name("preloaded.py")))
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE)
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        called = serve(listener)
    try:
        begin(*called)
    except SystemExit as said:
        if isinstance(said.code, str):
            raise
        leave(said.code or 0)
    leave(0)
