"""The simulator of phantora_py: costs, collectives, the event loop and the report. Never imports torch."""
