/** Channels of a configuration text, as the service would have them. */

import type { ChannelEntry } from '../../../../schemas/config/catalog.ts'
import { loadConfig } from '../../../../src/config/load.ts'
import type { Environment } from '../../../../src/config/source.ts'

const MODEL = 'models:\n  - { id: m, pricing: { unit: 1M_tokens, input: "1", output: "2" } }\n'

export function loadChannels(channels: string, env: Environment = {}) {
  return loadConfig(
    { path: 'c.yaml', digest: '', text: `${MODEL}channels:\n${channels}`, refusal: null },
    env,
  )
}

/** Returns the channel of these fields; it serves the model `m` by the name `up`. */
export function channelOf(fields: string, env: Environment = {}): ChannelEntry {
  const loaded = loadChannels(`  - { id: c, models: { m: up }, ${fields} }\n`, env)
  if (!loaded.ok)
    throw new Error(loaded.problems.map(({ field, message }) => `${field}: ${message}`).join('\n'))
  return loaded.config.channels[0]!
}
