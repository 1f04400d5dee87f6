"""Measures the application that makes notes of exports."""
