/** The fields of requests, beside the conversation itself, that upstreams make part of the prompt. */
import type { ChatProtocol } from '../../../schemas/config/catalog.ts'
import { type FieldSpan, isSet } from '../../core/json/splice.ts'
import { isObject } from '../loose.ts'

/** Settings that hold a schema, mostly: they count where they do. */
const FORMATS = ['response_format', 'output_format', 'output_config', 'text'] as const
type Format = (typeof FORMATS)[number]

/** By protocol. Some upstreams of chat-completions read more of a prompt than the vendor's own. */
const PROMPT_FIELDS: Readonly<Record<ChatProtocol, ReadonlySet<string>>> = {
  'chat-completions': new Set([
    ...['tools', 'functions', 'response_format', 'system', 'instructions', 'documents'],
    ...['chat_template', 'chat_template_kwargs', 'guided_json', 'guided_grammar', 'structured_outputs'],
  ]),
  messages: new Set(['tools', 'mcp_servers', 'output_format', 'output_config']),
  responses: new Set(['tools', 'text']),
  'generate-content': new Set(['tools']),
}

export const isPromptField = (protocol: ChatProtocol, name: string): boolean =>
  PROMPT_FIELDS[protocol].has(name)

/** Place of the format within such a setting; the others are the format. */
const FORMAT_WITHIN: Partial<Record<Format, string>> = { output_config: 'format', text: 'format' }

/** Returns whether the setting has more than a kind of text, such as `{"type": "json_object"}`. */
export function holdsSchema(name: string, value: unknown): boolean {
  const within = FORMAT_WITHIN[name as Format]
  const format = within !== undefined && isObject(value) ? value[within] : value
  return isObject(format) && Object.keys(format).some((key) => key !== 'type')
}

/** Returns the bytes of a value in the body. */
export const bytesOfField = (body: Buffer, span: FieldSpan | null | undefined): number =>
  isSet(body, span) ? span.end - span.start : 0

/** Returns the bytes of all such fields in the body. `settings` are the values of those that may have a schema. */
export function promptFieldBytes(
  protocol: ChatProtocol,
  body: Buffer,
  fields: ReadonlyMap<string, FieldSpan>,
  settings: Readonly<Partial<Record<string, unknown>>>,
): number {
  let bytes = 0
  for (const name of PROMPT_FIELDS[protocol])
    if (!isFormat(name) || holdsSchema(name, settings[name])) bytes += bytesOfField(body, fields.get(name))
  return bytes
}

const FORMAT_NAMES: ReadonlySet<string> = new Set(FORMATS)
export const isFormat = (name: string): boolean => FORMAT_NAMES.has(name)
