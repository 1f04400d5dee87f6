"""Much at once, for some minutes: 100,000 runs, a million items and 500 watchers; and what is left after a purge."""
