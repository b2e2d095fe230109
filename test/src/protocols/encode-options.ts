/** How the tests of dialects and translations have a request encoded. */
import { type EncodeOptions, PLAIN_OPTIONS } from '../../../src/protocols/dialect.ts'

export const encodeOptions = (more: Partial<EncodeOptions> = {}): EncodeOptions => ({
  ...PLAIN_OPTIONS,
  upstreamModel: 'theirs',
  outputCeiling: 4096,
  outputLimitField: 'max_tokens',
  askUsage: true,
  serverTools: ['web_search'],
  ...more,
})
