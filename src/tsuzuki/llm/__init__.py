"""Language models: providers, structured answers, a job queue, and questions as durable steps."""
