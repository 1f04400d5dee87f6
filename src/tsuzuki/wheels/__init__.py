"""Wheels: taken in, kept by the store, and installed by workers before their next claim."""
