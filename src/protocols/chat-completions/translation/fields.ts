/** Names the fields of a chat-completions request that a translation does not send to its upstream. */

import { type LooseObject, toFields } from '../../loose.ts'
import { type DroppedFields, nameAll } from '../../translate/dropped-fields.ts'

/** Fields that the gateway itself obeys, whichever upstream answers. */
const OBEYED: ReadonlySet<string> = new Set([
  ...['model', 'messages', 'stream', 'stream_options', 'max_tokens', 'max_completion_tokens', 'usage'],
])

/** The values by which a field requests its default. */
const DEFAULTS: Readonly<Record<string, readonly unknown[]>> = {
  frequency_penalty: [0],
  include_reasoning: [true],
  logprobs: [false],
  min_p: [0],
  n: [1],
  parallel_tool_calls: [true],
  presence_penalty: [0],
  prompt_cache_retention: ['in_memory', 'in-memory'],
  repetition_penalty: [1],
  search_context_size: ['medium'],
  service_tier: ['auto', 'default'],
  store: [false],
  top_a: [0],
  top_k: [0, -1],
  top_logprobs: [0],
  verbosity: ['medium'],
}

const isEmpty = (value: unknown): boolean =>
  value == null || value === '' || (typeof value === 'object' && Object.keys(value).length === 0)

/** True for a value that leaves everything as it is without the field. */
export function saysNothing(name: string, value: unknown): boolean {
  // To search the web, without options.
  if (name === 'web_search_options') return value == null
  if (isEmpty(value)) return true
  if (name === 'response_format') return toFields(value).type === 'text'
  if (name === 'modalities') return Array.isArray(value) && value.every((modality) => modality === 'text')
  return Object.hasOwn(DEFAULTS, name) && DEFAULTS[name]!.includes(value)
}

/** Adds to `dropped` every field of `request` that has a value and is not in `said`. */
export function nameFieldsLeftOut(request: unknown, said: ReadonlySet<string>, dropped: DroppedFields): void {
  const fields = toFields(request)
  const names = Object.keys(fields).filter(
    (name) => !OBEYED.has(name) && !said.has(name) && !saysNothing(name, fields[name]),
  )
  nameAll(names, dropped)
  if (toFields(toFields(request).stream_options).include_obfuscation === true)
    dropped.add('stream_options.include_obfuscation')
}

/** The fields that mark where a cached prefix of the prompt ends, of messages, of their parts and of tools. */
const CACHE_FIELDS = ['cache_control', 'prompt_cache_breakpoint'] as const

/** Adds to `dropped` the cache markers of a message, a part or a tool that are not in `said`. */
export function nameCacheMarkers(marked: LooseObject, said: readonly string[], dropped: DroppedFields): void {
  for (const field of CACHE_FIELDS) if (!said.includes(field) && !isEmpty(marked[field])) dropped.add(field)
}

const MESSAGE_FIELDS: readonly string[] = ['name', 'audio', 'images']

/**
 * Adds to `dropped` the fields of messages beyond their text, files and calls. `said` are fields of messages and of
 * their parts that the upstream gets.
 */
export function nameMessageFieldsLeftOut(
  messages: readonly LooseObject[],
  said: readonly string[],
  dropped: DroppedFields,
): void {
  for (const message of messages) {
    for (const field of MESSAGE_FIELDS)
      if (message.role !== 'function' && !said.includes(field) && !isEmpty(message[field]))
        dropped.add(`messages.${field}`)
    nameCacheMarkers(message, said, dropped)
    if (!Array.isArray(message.content)) continue
    for (const part of message.content) {
      const { detail } = toFields(toFields(part).image_url)
      if (detail != null && detail !== 'auto') dropped.add('image_url.detail')
      nameCacheMarkers(toFields(part), said, dropped)
    }
  }
}
