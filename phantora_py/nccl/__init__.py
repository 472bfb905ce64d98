"""NCCL as it behaves: which algorithm and protocol it takes, what they load, and how long they take.

release   the constants of NCCL's tuner, by version
group     how a communicator's members lie on the cluster
layout    what each algorithm carries over which link
tuner     NCCL's own choice of algorithm and protocol
timing    how long the chosen one takes: fitted figures (fitted), not the tuner's
settings  the NCCL_... variables that matter to time
calibrate repeats the fits and prints the errors
"""
