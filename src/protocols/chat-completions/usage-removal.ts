/** Removes usage from a chat-completions chunk for a client that did not request it. */
import { Buffer } from 'node:buffer'
import { type FieldSpan, removal, spliced } from '../../core/json/fields.ts'
import { FieldCursor } from '../answer/field-cursor.ts'
import { eventData, payloadStart } from '../sse/framer.ts'
import { saysSomething } from './scan.ts'

const USAGE = Buffer.from('usage')
/** Fields that every chunk has, and that mean nothing without choices. */
const ENVELOPE = [
  'id',
  'object',
  'created',
  'model',
  'choices',
  'system_fingerprint',
  'service_tier',
  'obfuscation',
].map((name) => Buffer.from(name))

const cursor = new FieldCursor()

/**
 * Returns the event `bytes[start, end)`, which has usage and no choices, without its usage, the rest byte for byte;
 * null where nothing else remains. A payload of several lines becomes one line.
 */
export function withoutUsage(bytes: Buffer, start: number, end: number): Buffer | null {
  const event = Buffer.from(bytes.subarray(start, end))
  const data = eventData(event, 0, event.length)
  if (data === null || !saysMore(data)) return null
  let rest = data
  // A duplicate field is removed twice.
  for (let usage = findUsage(rest); usage !== null; usage = findUsage(rest))
    rest = spliced(rest, [removal(rest, usage)])
  const at = payloadStart(data, event, 0, event.length)
  if (at < 0) return inOneLine(event, rest)
  return Buffer.concat([event.subarray(0, at), rest, event.subarray(at + data.length)])
}

function saysMore(data: Buffer): boolean {
  cursor.enter(data, data.indexOf('{'))
  while (cursor.next()) {
    const isKnown = cursor.is(USAGE) || ENVELOPE.some((name) => cursor.is(name))
    if (!isKnown && saysSomething(data, cursor.start)) return true
  }
  return false
}

function findUsage(data: Buffer): FieldSpan | null {
  cursor.enter(data, data.indexOf('{'))
  while (cursor.next())
    if (cursor.is(USAGE)) return { nameStart: cursor.nameStart, start: cursor.start, end: cursor.end }
  return null
}

function inOneLine(event: Buffer, data: Buffer): Buffer {
  const lines = event.toString('latin1').split(/\r\n?|\n/)
  const others = lines.filter((line) => line !== '' && !/^data(:|$)/.test(line))
  const payload = data.toString('latin1').replaceAll('\n', ' ')
  return Buffer.from([...others, `data: ${payload}`, '', ''].join('\n'), 'latin1')
}
