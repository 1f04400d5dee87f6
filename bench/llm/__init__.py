"""The job queue for language models, measured."""
