-- Stores it for the rows that are there, while the service runs on.
ALTER TABLE calls_failed MATERIALIZE COLUMN page_row SETTINGS mutations_sync = 0
