"""Lies here so that tests of every kind can import the helpers beside it (fake_rank)."""
