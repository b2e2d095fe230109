/** Decides whether an upstream refuses the option by which the gateway asks a stream for its usage. */
import { normalizeText } from '../../../src/core/normalize-text.ts'
import type { Route } from '../../../src/core/routing/catalog.ts'
import type { UsageOptionRefusals } from '../../../src/core/routing/usage-option-refusals.ts'
import type { RequestSource } from '../../../src/protocols/chat-completions/dialect.ts'
import type { ChatCall } from '../../../src/protocols/dialect.ts'
import type { AttemptFailure } from '../../calls/upstream-error.ts'

/** Returns false for an upstream that reports usage without being asked, or has refused the option. */
export const knowsUsageOption = (route: Route, refusals: Pick<UsageOptionRefusals, 'has'>): boolean =>
  !route.channel.quirks.includes('no-usage-option') && !refusals.has(route)

const OPTION = 'stream_options'
/** A larger request is not searched for the option's name: its error is returned as it is. */
const MAX_SEARCHED_BYTES = 1024 * 1024
/** Texts that name the option as the cause, by their beginning: text that an upstream quotes follows later. */
const NAMES_OPTION_AS_OFFENCE = new RegExp(
  '^(?:(?:bad request|invalid request|validation error|error)\\W{1,3})?(?:[\\w ]{0,40}?\\b(?:unrecogni[sz]ed|unknown|unsupported|unexpected|invalid|extra|additional|' +
    'not (?:supported|allowed|permitted))\\b[\\w :,.]{0,60}\\W{0,3}|' +
    `\\W{0,3}(?:the |parameter |argument |field |option |property |body\\.)*\\W{0,3})${OPTION}\\b`,
  'i',
)

const isOption = (parameter: string): boolean =>
  parameter === OPTION || parameter === `${OPTION}.include_usage`

/**
 * Returns whether an error may have copied the option's name from the request itself, the option apart. A customer who
 * could make an upstream quote it would be billed by estimates.
 */
function mayBeQuoted({ body }: RequestSource): boolean {
  if (body.length > MAX_SEARCHED_BYTES) return true
  const { [OPTION]: _, ...rest } = JSON.parse(body.toString('utf8')) as Record<string, unknown>
  return normalizeText(JSON.stringify(rest), 'NFKC').toLowerCase().includes(OPTION)
}

/** Returns whether the upstream refused the option that asks for usage, and nothing of the client's. */
export function rejectsUsageOption(route: Route, call: ChatCall, failure: AttemptFailure): boolean {
  if (route.protocol !== 'chat-completions' || route.isTranslated) return false
  if (!call.stream || failure.code !== 'invalid_request') return false
  const { parameter = null, message } = failure
  const isNamed = parameter === null ? NAMES_OPTION_AS_OFFENCE.test(message) : isOption(parameter)
  if (!isNamed) return false
  const source = call.source as RequestSource
  // The client answers for whatever else it wants of the stream.
  const options = Object.keys(source.request.stream_options ?? {})
  return options.every((option) => option === 'include_usage') && !mayBeQuoted(source)
}
