"""Errors that a user sees."""


class LaunchError(Exception):
    """Something that the user can mend: what happened, with its value, and a hint."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(f"{what}\n  hint: {hint}")
        self.what = what
        self.hint = hint
