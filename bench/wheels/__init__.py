"""Wheels measured: what it costs a worker that nothing has changed."""
