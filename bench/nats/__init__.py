"""Measures the store on NATS beside the raw client and a peer: `python -m bench --only nats`."""
