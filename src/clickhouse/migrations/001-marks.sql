-- Points that outlive a process, such as the instant from which calls are kept. Of inserts with one token the first stays.
CREATE TABLE IF NOT EXISTS tollgate_marks (
  name   String,
  value  UInt64,
  set_at DateTime DEFAULT now()
)
ENGINE = MergeTree
ORDER BY name
SETTINGS non_replicated_deduplication_window = 1000, fsync_after_insert = 1, fsync_part_directory = 1
