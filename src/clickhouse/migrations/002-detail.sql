-- What shaped a call and what became of it, as JSON text. Empty for the rows from before.
ALTER TABLE calls ADD COLUMN IF NOT EXISTS detail String CODEC(ZSTD(3)) SETTINGS (min_compress_block_size = 65536)
