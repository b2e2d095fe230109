/** What a stream says, found out the slow way: eventsource-parser and JSON.parse. The scanner is held against it. */
import { readdirSync, readFileSync } from 'node:fs'
import { createParser } from 'eventsource-parser'
import type { ChatCompletionsMeter } from '../../../../src/protocols/chat-completions/meter.ts'
import { readUsage } from '../../../../src/protocols/usage/chat-completions.ts'

const FIXTURES = new URL('../../../fixtures/chat-completions/', import.meta.url)

/** The recorded streams by name. */
export const STREAMS: ReadonlyMap<string, Buffer> = new Map(
  readdirSync(FIXTURES)
    .filter((file) => file.endsWith('.sse'))
    .map((file) => [file.replace('.sse', ''), readFileSync(new URL(file, FIXTURES))]),
)

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

const isObject = (value: Json | undefined): value is { [key: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Payloads that are not empty, in order. An event that the end cut short is none. */
export function payloads(stream: string): string[] {
  const found: string[] = []
  createParser({ onEvent: ({ data }) => data !== '' && found.push(data) }).feed(stream)
  return found
}

const SPOKEN = new Set(['content', 'reasoning_content', 'reasoning', 'refusal', 'arguments'])
/** Characters by script: each byte of a character's UTF-8 behind its first counts as one and a half more. */
export const weighed = (text: string): number =>
  [...text].length + 1.5 * (Buffer.byteLength(text) - [...text].length)

/** A usage object at any depth holds counts, and no output. */
const isUsage = (name: string, value: Json): boolean => name === 'usage' && isObject(value)

/** Characters of every string that stands under a spoken name, below the top level and outside usage and error. */
export function charactersOf(value: Json, isTop = true): number {
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + charactersOf(item, false), 0)
  if (!isObject(value)) return 0
  return Object.entries(value).reduce((sum, [name, inner]) => {
    if ((isTop && (name === 'usage' || name === 'error')) || isUsage(name, inner)) return sum
    if (typeof inner !== 'string') return sum + charactersOf(inner, false)
    return !isTop && SPOKEN.has(name) ? sum + weighed(inner) : sum
  }, 0)
}

export function hasFinish(value: Json, isTop = true): boolean {
  if (Array.isArray(value)) return value.some((item) => hasFinish(item, false))
  if (!isObject(value)) return false
  return Object.entries(value).some(([name, inner]) => {
    if ((isTop && (name === 'usage' || name === 'error')) || isUsage(name, inner)) return false
    if (typeof inner !== 'string') return hasFinish(inner, false)
    return !isTop && name === 'finish_reason' && inner !== ''
  })
}

/** null, false, 0, "", [] and {} say nothing. */
export function saysSomething(value: Json | undefined): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0
  return Boolean(value)
}

export function isUsageOnly(value: Json): boolean {
  if (!isObject(value) || !isObject(value.usage)) return false
  const hasChoices = Array.isArray(value.choices) && value.choices.length > 0
  return !hasChoices && !saysSomething(value.error)
}

export interface Said {
  usage: ReturnType<typeof readUsage>
  characters: number
  isDone: boolean
  hasFinish: boolean
}

export function referenceOf(stream: string): Said {
  const said: Said = { usage: null, characters: 0, isDone: false, hasFinish: false }
  for (const payload of payloads(stream)) {
    if (payload === '[DONE]') said.isDone = true
    else {
      const value = JSON.parse(payload)
      said.usage = readUsage(value.usage) ?? said.usage
      said.characters += charactersOf(value)
      said.hasFinish ||= hasFinish(value)
    }
  }
  return said
}

export const saidBy = ({ usage, characters, isDone, hasFinish }: ChatCompletionsMeter): Said => ({
  usage,
  characters,
  isDone,
  hasFinish,
})

/** The stream without its usage chunks. */
export function withoutUsageChunks(stream: string): string {
  const blocks = stream.split(/(?<=\n\r?\n)/)
  const isUsage = (block: string) =>
    payloads(`${block}\n\n`).some((payload) => payload !== '[DONE]' && isUsageOnly(JSON.parse(payload)))
  return blocks.filter((block) => !isUsage(block)).join('')
}
