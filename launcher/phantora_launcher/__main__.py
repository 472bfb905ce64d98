"""Entry point of the `phantora` command, and of `python -m phantora_launcher`."""

import signal
import sys

from phantora_launcher import exit_codes


def main() -> None:
    # Until a supervisor takes the signals over: no traceback, and the code that shells use.
    signal.signal(signal.SIGINT, lambda _sign, _frame: sys.exit(exit_codes.INTERRUPTED))
    from phantora_launcher.cli import run_command

    run_command()


if __name__ == "__main__":
    main()
