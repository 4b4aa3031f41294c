"""Heavy libraries, imported only where something is measured or checked."""

import os
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from napkin.errors import DeviceError, first_line, printable


def load(module: str, name: str) -> None:
    """Imports it. Raises DeviceError where it is broken, or something else bears its name."""
    _leave_a_deleted_folder()
    try:
        # torch says on every import that NumPy is not there.
        with _interrupted_afterwards(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
            imported = import_module(module)
    except Exception as error:  # a broken installation can raise anything
        said = f"{name} is installed but cannot be imported: {first_line(error)}"
        raise DeviceError(said) from None
    if not hasattr(imported, "__version__"):
        # A folder that an uninstaller left, a script of that name in the working directory.
        where = getattr(imported, "__file__", None) or next(iter(imported.__path__))
        raise DeviceError(f"{printable(where)} is not {name} and stands in its place; rename it")


def _leave_a_deleted_folder() -> None:
    """MKL ends the process where the working directory is gone. No path is lost by it: none that
    is relative to such a folder can be read or written."""
    try:
        os.getcwd()
    except OSError:
        os.chdir(os.path.abspath(os.sep))


@contextmanager
def _interrupted_afterwards() -> Iterator[None]:
    """Ctrl-C waits for the end: what runs in C while torch is imported would swallow it."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupts: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: interrupts.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if interrupts:
        raise KeyboardInterrupt
