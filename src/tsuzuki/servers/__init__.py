"""The NATS servers of a store: started, joined, looked at, examined, taken out and ended."""
