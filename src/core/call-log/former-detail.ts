/** Details that were stored when fields had abbreviations for names, and prices were a line of text. */

const NAMES: Readonly<Record<string, string>> = {
  ep: 'endpoint',
  q: 'model_as_asked',
  b: 'prompt_bytes',
  m: 'messages',
  o: 'max_output_tokens',
  n: 'choices',
  t: 'temperature',
  p: 'top_p',
  k: 'top_k',
  fp: 'frequency_penalty',
  pp: 'presence_penalty',
  s: 'seed',
  st: 'stop_sequences',
  e: 'reasoning_effort',
  eb: 'thinking_budget_tokens',
  tn: 'tools',
  bt: 'built_in_tools',
  tc: 'tool_choice',
  f: 'response_format',
  ag: 'agent',
  kp: 'knowledge_pages',
  rq: 'request',
  u: 'upstream_protocol',
  d: 'left_out',
  h: 'upstream_status',
  w: 'before_upstream_us',
  a: 'waiting_for_upstream_us',
  us: 'usage_suspect',
  om: 'answered_by_other_model',
  up: 'result',
  g: 'prices',
  pl: 'charge',
  x: 'refused_estimate',
}

/** Such as `12.5 1.25 15.625 100 t2.022 d0.8 f272000`. */
const PRICES = /^(\S+) (\S+) (\S+) (\S+)(?: t(\S+))?(?: d(\S+))?(?: f(\d+))?$/

function pricesOf(text: unknown): unknown {
  const parts = typeof text === 'string' ? PRICES.exec(text) : null
  if (parts === null) return text
  const [, input, cached_input, cache_write, output, server_tool_call, discount, from] = parts
  return {
    input,
    cached_input,
    cache_write,
    output,
    server_tool_call,
    discount,
    ...(from !== undefined && { from_prompt_tokens: Number(from) }),
  }
}

/** Returns a stored detail with the names that its fields have now. */
export const withNames = (stored: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(stored).map(([key, value]) => [NAMES[key] ?? key, key === 'g' ? pricesOf(value) : value]),
  )
