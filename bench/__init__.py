"""Measures Tsuzuki beside yardsticks and peers: `python -m bench`, explained in docs/benchmarks.md."""
