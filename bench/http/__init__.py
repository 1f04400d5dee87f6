"""Measures the gateway and a worker as the processes that people start, over HTTP."""
