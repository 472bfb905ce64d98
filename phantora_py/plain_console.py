"""Tables and text on the terminal, as they are: names of clusters, files, switches and ops are no markup."""

from __future__ import annotations

from typing import Any

from rich.console import Console


def plain_console(**options: Any) -> Console:
    """A Console whose styles are given beside the text, never in it."""
    return Console(markup=False, emoji=False, highlight=False, **options)
