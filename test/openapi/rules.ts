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

export const RULES: readonly Rule[] = [
  { status: 400, message: /^The model '.*' does not exist\.$/s, why: STORED },
  { status: 400, message: /^No channel that this key may use keeps conversations/, why: STORED },
  { status: 400, message: /no channel of the model '.*' keeps (responses|conversations)/s, why: STORED },
  { status: 400, message: /^Parameter cursor: is not a cursor of this log/, why: STORED },
  { status: 400, message: /^The tool type '.*' is not known/s, why: STORED },
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
  { status: 400, message: /^conversation: a conversation is compacted in one piece/, why: OTHER_FIELD },
  { status: 400, message: /^max_tokens: Extra inputs are not permitted/, why: UPSTREAM },
  { status: 400, message: /^Invalid 'max_output_tokens': integer below minimum value/, why: UPSTREAM },
]

/** Statuses that say what the service cannot do now. */
export const UNAVAILABLE: readonly number[] = [503, 504]

/** Operations that are not called, each with the reason. */
export const LEFT_OUT: Readonly<Record<string, string>> = {
  'GET /v1/responses': 'it upgrades to a WebSocket',
  'POST /webhooks/stripe': 'without a payment provider there is no such endpoint',
}
