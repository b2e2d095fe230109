/** The recorded streams of the generate-content protocol, and what they say, found out the slow way. */
import { readdirSync, readFileSync } from 'node:fs'
import { completionsClient } from '../../../../src/protocols/chat-completions/translation/sides.ts'
import type { AnswerStream } from '../../../../src/protocols/dialect.ts'
import { generateContentUpstream } from '../../../../src/protocols/generate-content/translation/sides.ts'
import { translation } from '../../../../src/protocols/translate/translation.ts'
import { payloads, weighed } from '../chat-completions/reference.ts'
import { CREATED_SECONDS, chatCall } from '../messages/streams.ts'

const FIXTURES = new URL('../../../fixtures/generate-content/', import.meta.url)

const readAll = (folder: URL, ending: string): ReadonlyMap<string, Buffer> =>
  new Map(
    readdirSync(folder)
      .filter((file) => file.endsWith(ending))
      .map((file) => [file.slice(0, -ending.length), readFileSync(new URL(file, folder))]),
  )

/** Asked for with `alt=sse`. */
export const EVENT_STREAMS = readAll(FIXTURES, '.sse')
/** Asked for without. */
export const ARRAY_STREAMS = readAll(FIXTURES, '.array')
/** What a chat-completions client gets of each event stream, but for the ids of calls. */
export const GOLDEN = readAll(new URL('golden/', FIXTURES), '.sse')

export const TO_GENERATE_CONTENT = translation(
  ['chat-completions', completionsClient],
  ['generate-content', generateContentUpstream],
  () => CREATED_SECONDS * 1000,
)

export const translatedStream = (): AnswerStream => TO_GENERATE_CONTENT.openStream(chatCall())

/** Ids that are made up as an answer goes, replaced by the order of their first appearance. */
export function withoutChance(output: Buffer): string {
  const known = new Map<string, string>()
  return output.toString().replaceAll(/(call_|chatcmpl-)[0-9A-Z]{26}/g, (id, kind: string) => {
    if (!known.has(id)) known.set(id, `${kind}${known.size}`)
    return known.get(id)!
  })
}

/** The chunks of an event stream, as far as they are whole. */
export const chunksOfEvents = (stream: Buffer): unknown[] =>
  payloads(`${stream.toString()}\n\n`).flatMap((data) => {
    try {
      return [JSON.parse(data)]
    } catch {
      return []
    }
  })

/** The same of an array, which is cut back to what is JSON. */
export function chunksOfArray(stream: Buffer): unknown[] {
  const text = stream.toString()
  for (let end = text.length; end > 0; end = text.lastIndexOf('}', end - 1)) {
    const whole = text.slice(0, end + 1).replace(/[\s\]]*$/, '')
    for (const closed of [whole, `${whole}]`]) {
      try {
        return [JSON.parse(closed)].flat()
      } catch {}
    }
  }
  return []
}

interface Part {
  readonly text?: string
  readonly functionCall?: { readonly args?: unknown }
  readonly executableCode?: { readonly code: string }
}
interface Chunk {
  readonly candidates?: readonly {
    readonly content?: { readonly parts?: readonly Part[] }
    readonly finishReason?: string
  }[]
  readonly promptFeedback?: { readonly blockReason?: string }
  readonly error?: object
}

/** Of a value as JSON without white space, an escaped character counting as one. */
function charactersOfJson(value: unknown): number {
  if (typeof value === 'string') return 2 + weighed(value)
  if (typeof value !== 'object' || value === null) return String(value).length
  const inner = Array.isArray(value)
    ? value.map(charactersOfJson)
    : Object.entries(value).map(([name, field]) => charactersOfJson(name) + 1 + charactersOfJson(field))
  return 2 + inner.reduce((sum, count) => sum + count, 0) + Math.max(0, inner.length - 1)
}

/** What a meter has to find in `chunks`. */
export function saidIn(chunks: readonly unknown[]) {
  const all = chunks as readonly Chunk[]
  const parts = all.flatMap(({ candidates = [] }) => candidates.flatMap((c) => c.content?.parts ?? []))
  const counts = parts.map(
    ({ text = '', functionCall, executableCode }) =>
      weighed(text + (executableCode?.code ?? '')) +
      (functionCall?.args === undefined ? 0 : charactersOfJson(functionCall.args)),
  )
  return {
    characters: counts.reduce((sum, count) => sum + count, 0),
    isComplete: all.some(
      ({ candidates = [], promptFeedback }) =>
        candidates.some(({ finishReason }) => finishReason) || promptFeedback?.blockReason,
    ),
    firstError: all[0]?.error ?? null,
  }
}
