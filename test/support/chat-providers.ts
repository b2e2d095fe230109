/** The providers of chat models: each reports usage in its own way. */
import { CHAT_PROTOCOLS } from '../../schemas/config/catalog.ts'
import { PRESETS } from '../../src/channels/providers/presets.ts'

export const CHAT_PROVIDERS: readonly string[] = Object.keys(PRESETS).filter((name) =>
  CHAT_PROTOCOLS.some((protocol) => PRESETS[name]!.baseUrls[protocol] !== undefined),
)
