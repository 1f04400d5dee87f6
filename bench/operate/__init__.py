"""Operating a store: how long it takes to back one up and to bring it back, compared item by item."""
