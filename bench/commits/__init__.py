"""Measures the application that collects commits."""
