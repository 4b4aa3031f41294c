"""The command line: reads arguments, asks one question, hands the answer to a renderer."""

import os

INTERRUPTED = 130


def main() -> None:
    """The console script: from here on Ctrl-C is exit code 130, whatever is being loaded.

    So nothing that takes time to load is imported above.
    """
    try:
        import gc
        import signal

        gc.disable()  # an answer leaves little to collect: a tenth of its time goes without

        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not under nohup
            # An exception could be swallowed, or printed, by whatever is just being imported.
            signal.signal(signal.SIGINT, lambda number, frame: os._exit(INTERRUPTED))
        from napkin.cli.app import run

        try:
            run()
        finally:
            gc.freeze()  # nor is there a last collection: the process ends with all of it
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
