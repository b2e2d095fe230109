-- The same where the failed calls are: refused ones are among them.
ALTER TABLE calls_failed ADD COLUMN IF NOT EXISTS call_count UInt32 DEFAULT 1 CODEC(T64, ZSTD(1))
