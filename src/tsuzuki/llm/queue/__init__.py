"""The job queue: questions under a process id, asked by strategy, handed over, deleted; it knows nobody who asks."""
