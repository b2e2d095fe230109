/** Mistral: refuses unknown fields, and ids of tool calls in any form but its own; reports usage without being asked. */
import type { Provider } from '../provider.ts'
import { keepKnownFields, withShortIds } from './quirks.ts'

export const mistral: Provider = {
  title: 'Mistral',
  baseUrls: {
    'chat-completions': 'https://api.mistral.ai/v1',
  },
  outputLimitField: 'max_tokens',
  quirks: {
    'nine-character-tool-call-ids': withShortIds,
    'known-fields-only': keepKnownFields,
    // The option is never put in: see `encodeRequest`.
    'no-usage-option': null,
  },
}
