"""Exit codes of the `phantora` commands. `phantora run` otherwise ends with the code of the job itself."""

OK = 0
FAILED = 1
"""A command found something wrong (`phantora doctor`), or torchrun's front saw a rank fail."""
USAGE = 2
"""The command line, the cluster file or the machine is not as it must be; nothing was started."""
EMULATION = 70
"""The emulation itself could not go on: an unsupported function in a rank, or the simulator ended before the job."""
NOT_EXECUTABLE = 126
NOT_FOUND = 127
SIGNAL_BASE = 128
"""128 + n: the job was ended by signal n (130: Ctrl-C)."""
INTERRUPTED = SIGNAL_BASE + 2
"""By Ctrl-C."""


def of_wait_status(code: int) -> int:
    """A shell's exit code for a code as `subprocess` and `os.waitstatus_to_exitcode` tell it (negative: signal)."""
    return code if code >= 0 else SIGNAL_BASE - code
