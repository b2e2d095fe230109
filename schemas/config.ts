/** `tollgate.yaml` and the environment. Source: operator, "Settings" and "Configuration file". */
import { z } from 'zod'
import { DEFAULT_TRIAL_CREDIT } from './account.ts'
import { channelEntry, modelEntry } from './catalog.ts'
import { creditsText, parseCredits } from './money.ts'

const limit = z.int().positive().nullable().default(null)

/** How long known keys go on being served while PostgreSQL is away. */
export const DEFAULT_DATABASE_GRACE_SECONDS = 60

export const configFile = z.strictObject({
  /** Defaults for every account; null is no limit. */
  limits: z.strictObject({ requests_per_minute: limit, concurrency: limit }).prefault({}),
  trial_credit: creditsText.default(parseCredits(DEFAULT_TRIAL_CREDIT)),
  wallet: z.strictObject({ reserve_in_flight: z.boolean().default(true) }).prefault({}),
  database: z
    .strictObject({ grace_seconds: z.int().min(0).max(3600).default(DEFAULT_DATABASE_GRACE_SECONDS) })
    .prefault({}),
  /** Tries after the first, each on another channel where there is one. Decisions, "Chat". */
  retries: z.int().min(0).max(10).default(2),
  models: z.array(modelEntry).default([]),
  channels: z.array(channelEntry).default([]),
})
export type ConfigFile = z.infer<typeof configFile>
