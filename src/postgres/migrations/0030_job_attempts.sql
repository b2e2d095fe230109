-- How often a process has begun the job: one whose processes all end under it fails.
ALTER TABLE jobs ADD COLUMN attempts int NOT NULL DEFAULT 0;
