"""The generator of the shims' stubs, tables and version scripts (python -m codegen, in native/)."""
