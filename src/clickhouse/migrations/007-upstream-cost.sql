-- What the operator pays for a call, by the cost of its channel; null where that is not known.
ALTER TABLE calls ADD COLUMN IF NOT EXISTS upstream_cost Nullable(Decimal(18, 8)) CODEC(ZSTD(1))
