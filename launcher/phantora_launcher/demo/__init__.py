"""The demo's job: files as a user of TorchTitan would have them, and the assets that no hub is needed for."""
