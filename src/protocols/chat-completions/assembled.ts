/**
 * Puts the chunks of a chat-completions stream together as one whole body, whichever upstream made them: unknown
 * fields are kept.
 */
import { Buffer } from 'node:buffer'
import { isObject, type LooseObject, parseFields, toFields, toList, toText } from '../loose.ts'
import { EventReader } from '../sse/event-reader.ts'

/** Fields that come in pieces; any other text comes whole, more than once at most. */
const IN_PIECES: ReadonlySet<string> = new Set([
  ...['content', 'refusal', 'reasoning', 'reasoning_content', 'thinking', 'text', 'summary'],
  ...['arguments', 'data', 'transcript'],
])
/** Lists whose items have an `index` in a stream, and none in a whole answer. */
const WITHOUT_INDEX: ReadonlySet<string> = new Set(['tool_calls'])

type Fields = Record<string, unknown>

/** Returns whether an item begins a call: some upstreams give all of them one index. */
const isAnotherCall = (item: LooseObject, known: LooseObject): boolean =>
  toText(toFields(item.function).name) !== '' && toText(item.id) !== '' && item.id !== known.id

function findKnown(items: readonly unknown[], item: LooseObject): unknown {
  if (typeof item.index !== 'number') return undefined
  const known = items.findLast((other) => toFields(other).index === item.index)
  return isAnotherCall(item, toFields(known)) ? undefined : known
}

function addItems(to: unknown[], items: readonly unknown[]): unknown[] {
  for (const item of items) {
    const known = findKnown(to, toFields(item))
    if (isObject(known) && isObject(item)) addFields(known as Fields, item)
    else to.push(isObject(item) ? addFields({}, item) : item)
  }
  return to
}

/** Adds the fields of a delta to those before. */
function addFields(to: Fields, delta: LooseObject): Fields {
  for (const [name, value] of Object.entries(delta)) {
    if (name === '__proto__') continue
    const before = to[name]
    if (value == null && before !== undefined) continue
    if (typeof value === 'string' && typeof before === 'string' && IN_PIECES.has(name))
      to[name] = before + value
    else if (Array.isArray(value)) to[name] = addItems(Array.isArray(before) ? before : [], value)
    else if (isObject(value)) to[name] = addFields(isObject(before) ? (before as Fields) : {}, value)
    else to[name] = value
  }
  return to
}

const withoutIndex = (item: unknown): unknown => {
  const { index: _, ...rest } = toFields(item)
  return rest
}

const toMessage = (delta: Fields): LooseObject =>
  Object.fromEntries(
    Object.entries({ role: 'assistant', content: null, ...delta }).map(([name, value]) => [
      name,
      WITHOUT_INDEX.has(name) ? toList(value).map(withoutIndex) : value,
    ]),
  )

export class AssembledCompletion {
  readonly #events = new EventReader((_name, data) => this.#event(data))
  readonly #head: Fields = {}
  readonly #choices = new Map<number, Fields>()

  /** Takes the next bytes of the stream, as its client would get them. */
  push(bytes: Buffer): void {
    this.#events.push(bytes)
  }

  #event(data: string): void {
    const chunk = parseFields(data)
    if (chunk === null) return
    const { choices, ...head } = chunk
    for (const [name, value] of Object.entries(head)) if (value != null) this.#head[name] = value
    for (const choice of toList(choices)) this.#choice(toFields(choice))
  }

  #choice(choice: LooseObject): void {
    const index = Number(choice.index ?? 0)
    const known = this.#choices.get(index) ?? { index }
    this.#choices.set(index, addFields(known, choice))
  }

  /** Returns the `chat.completion`. */
  body(): Buffer {
    this.#events.end()
    const { usage, ...head } = this.#head
    const choices = [...this.#choices.values()]
      .sort((a, b) => Number(a.index) - Number(b.index))
      .map(({ delta, ...choice }) => ({ ...choice, message: toMessage(toFields(delta) as Fields) }))
    const whole = { ...head, object: 'chat.completion', choices, ...(usage !== undefined && { usage }) }
    return Buffer.from(JSON.stringify(whole))
  }
}
