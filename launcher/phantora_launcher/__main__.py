"""`python -m phantora_launcher`: the `phantora` command."""

from phantora_launcher.cli import main

main()
