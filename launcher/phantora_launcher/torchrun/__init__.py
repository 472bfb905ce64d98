"""torchrun's front: takes torchrun's options and starts the ranks of all nodes of the cluster on this machine."""
