-- Completed runs with failed items are filtered for and counted. A run enters this index once, when it completes.
CREATE INDEX runs_completed_with_failures ON runs (updated_at)
    WHERE status = 'COMPLETED' AND failed > 0;
