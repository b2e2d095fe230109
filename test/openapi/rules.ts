/** Refusals of valid requests that the description cannot state, each with the reason. */

interface Rule {
  readonly status: number
  readonly message: RegExp
  readonly why: string
}

const STORED = 'what the service has'
const REACHED = 'what it reaches'
const OTHER_FIELD = 'it depends on another field'
const UPSTREAM = 'a rule of the upstream'
const SIZE = 'the size of a decimal text'
const NO_NULL = 'a form has no null'

export const RULES: readonly Rule[] = [
  { status: 400, message: /^The model '.*' does not exist\.$/s, why: STORED },
  { status: 400, message: /^No channel that this key may use keeps conversations/, why: STORED },
  { status: 400, message: /no channel of the model '.*' keeps (responses|conversations)/s, why: STORED },
  { status: 400, message: /^Parameter cursor: is not a cursor of this log/, why: STORED },
  { status: 400, message: /^cursor: is not the next_cursor of a page/, why: STORED },
  { status: 400, message: /^allowed_models: The configuration has no model /, why: STORED },
  { status: 400, message: /^The (link|invitation) was used/, why: STORED },
  { status: 400, message: /is a personal one(, not an organization|: agents belong to)/, why: STORED },
  { status: 400, message: /^Key .* has no spend cap: only keys of kind/s, why: STORED },
  { status: 400, message: /has no journal that may be imported/, why: STORED },
  { status: 400, message: /^Passkeys need a browser/, why: REACHED },
  { status: 400, message: /^expires_at: is past/, why: 'what time it is' },
  { status: 400, message: /^events: .* is no event of /, why: STORED },
  { status: 400, message: /^The text has no .* in (models|channels)\.$/s, why: OTHER_FIELD },
  { status: 400, message: /^The text has problems: correct them first/, why: OTHER_FIELD },
  { status: 400, message: /is neither an address nor a network/, why: 'addresses have many forms' },
  { status: 400, message: /^email: is not an email address/, why: 'addresses have many forms' },
  { status: 400, message: /(is above 0|must be more than 0)\.$/, why: SIZE },
  { status: 400, message: /top-up is at least [\d.]+ credits/, why: SIZE },
  { status: 400, message: /^An adjustment of 0 credits changes nothing/, why: SIZE },
  { status: 400, message: /^amount: is more than 0/, why: SIZE },
  { status: 400, message: /^The tool type '.*' is not known/s, why: STORED },
  { status: 400, message: /^Field 'response_format' is not valid: it must be 'mp3'/, why: STORED },
  { status: 400, message: /it must be an http or https link of at most/, why: 'links have many forms' },
  { status: 400, message: /^The file at .* cannot be fetched/s, why: REACHED },
  { status: 400, message: /^Parameter limit: must be 1 to 200\.$/, why: OTHER_FIELD },
  {
    status: 400,
    message: /^Field 'tools\[\d+\]\.(input_schema|name)' is not valid: it is missing/,
    why: OTHER_FIELD,
  },
  { status: 400, message: /it is given together with '.*', which is the same field$/s, why: OTHER_FIELD },
  {
    status: 400,
    message: /one of prompt and lyrics is required, unless instrumental is true$/,
    why: OTHER_FIELD,
  },
  {
    status: 400,
    message: /^conversation: it cannot be combined with previous_response_id/,
    why: OTHER_FIELD,
  },
  { status: 400, message: /^\w+: a conversation is compacted in one piece/, why: OTHER_FIELD },
  {
    status: 400,
    message: /^callback_url: it tells the end of an answer in the background/,
    why: OTHER_FIELD,
  },
  { status: 400, message: /a message needs role and content$/, why: OTHER_FIELD },
  { status: 400, message: /it is given together with '.*'; give one of the two$/s, why: OTHER_FIELD },
  { status: 400, message: /^Field 'contents' is not valid: it is missing$/, why: OTHER_FIELD },
  { status: 400, message: /^Field 'stream' is not valid: media are not streamed/, why: NO_NULL },
  {
    status: 400,
    message: /^Field 'response_format' is not valid: it must be one of url, b64_json$/,
    why: NO_NULL,
  },
  { status: 400, message: /from and to must be given together\.$/, why: OTHER_FIELD },
  { status: 400, message: /^Field 'url' is not valid: it is required$/, why: OTHER_FIELD },
  { status: 400, message: /: (Extra inputs are not permitted|Input should be)/, why: UPSTREAM },
  { status: 400, message: /^Unknown parameter: '/, why: UPSTREAM },
  { status: 400, message: /^Invalid value: '.*'\. Supported values are: /s, why: UPSTREAM },
  { status: 400, message: /^Invalid 'max_output_tokens': integer below minimum value/, why: UPSTREAM },
]

/** Statuses that say what the service cannot do now. */
export const UNAVAILABLE: readonly number[] = [503, 504]

/** Operations that are not called, each with the reason. */
export const LEFT_OUT: Readonly<Record<string, string>> = {
  'GET /v1/responses': 'it upgrades to a WebSocket',
  'POST /webhooks/stripe': 'without a payment provider there is no such endpoint',
}
