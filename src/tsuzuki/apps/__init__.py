"""The applications that ship with Tsuzuki; each comes in through the entry point group `tsuzuki.apps`."""
