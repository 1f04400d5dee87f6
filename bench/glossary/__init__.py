"""Measures the application that makes glossaries."""
