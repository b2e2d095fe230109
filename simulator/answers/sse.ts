/** The framing of streams: server-sent events, in every valid form that a provider may use, or a JSON array. */

/** One event of a streamed answer. */
export type Frame = {
  /** The `event:` field, in dialects that have one. */
  readonly event?: string
  /** The `data:` field: JSON on one line, or a marker. */
  readonly data: string
  /** Its output tokens, which pace, token faults and the count of the call use. */
  readonly tokens: number
  /** True for the dialect's end marker, which `fault=no_done` leaves out. */
  readonly terminator?: boolean
}

type FrameEncoder = (frame: Frame) => string

/** The frame that closes a JSON array. */
export const ARRAY_END: Frame = { data: ']', tokens: 0 }

/** Returns a function that writes frames as elements of one JSON array, which `ARRAY_END` closes. */
export function arrayEncoder(): FrameEncoder {
  let opening = '['
  return (frame) => {
    if (frame === ARRAY_END) return opening === '[' ? '[]' : '\n]'
    const text = opening + frame.data
    opening = '\n,\r\n'
    return text
  }
}

export const SSE_VARIATIONS = ['crlf', 'comments', 'nospace', 'multiline'] as const

export type SseVariation = (typeof SSE_VARIATIONS)[number]

/** Returns a function that writes a frame as an event, with all the given variations. */
export function sseEncoder(variations: readonly SseVariation[]): FrameEncoder {
  if (variations.length === 0) return encodePlainly
  const newline = variations.includes('crlf') ? '\r\n' : '\n'
  const colon = variations.includes('nospace') ? ':' : ': '
  return (frame) => {
    const lines: string[] = []
    if (variations.includes('comments')) lines.push(':', ': the simulated provider is working', '')
    if (frame.event !== undefined) lines.push(`event${colon}${frame.event}`)
    const data = variations.includes('multiline') ? indentLines(frame.data) : [frame.data]
    lines.push(...data.map((line) => `data${colon}${line}`), '', '')
    return lines.join(newline)
  }
}

function encodePlainly(frame: Frame): string {
  const event = frame.event === undefined ? '' : `event: ${frame.event}\n`
  return `${event}data: ${frame.data}\n\n`
}

/** Spreads JSON over many lines, which a reader joins with line feeds. A marker stays as it is. */
function indentLines(data: string): string[] {
  if (!data.startsWith('{') && !data.startsWith('[{')) return [data]
  return JSON.stringify(JSON.parse(data), null, 1).split('\n')
}
