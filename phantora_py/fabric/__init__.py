"""The network between the nodes: its kinds as a cluster file names them, cables, and routes over them."""
