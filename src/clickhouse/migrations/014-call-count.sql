-- How many calls a row stands for: refused calls of one key, model and reason share a row where there are too many.
ALTER TABLE calls ADD COLUMN IF NOT EXISTS call_count UInt32 DEFAULT 1 CODEC(T64, ZSTD(1))
