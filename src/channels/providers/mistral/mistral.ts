/** Mistral: refuses unknown fields, and ids of tool calls in any form but its own; reports usage without being asked. */
import type { ProviderPreset } from '../provider.ts'

export const mistral: ProviderPreset = {
  title: 'Mistral',
  baseUrls: {
    'chat-completions': 'https://api.mistral.ai/v1',
  },
  outputLimitField: 'max_tokens',
  quirks: ['nine-character-tool-call-ids', 'known-fields-only', 'no-usage-option'],
}
