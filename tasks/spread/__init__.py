"""Stages that the workers of a cluster compute together, block by block: the bytes are those of one machine.

One file a stage that can be; `tasks.storage.cluster.SPREAD` says which.
"""
