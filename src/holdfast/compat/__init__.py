"""The classes of other memories over a `Memory`, so that a program changes an import and nothing else."""
