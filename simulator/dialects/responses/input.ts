/** Checks `input` as the responses interface does: items, and which outputs answer which calls. */

import { isObject, SimulatedFailure } from '../../dialect.ts'

const ROLES = ['user', 'assistant', 'system', 'developer']
const PARTS: Readonly<Record<string, readonly string[]>> = {
  assistant: ['output_text', 'refusal'],
  other: ['input_text', 'input_image', 'input_file'],
}
/** The prefixes of ids, by the type of the item. */
const ID_PREFIXES: Readonly<Record<string, string>> = {
  ...{ message: 'msg', reasoning: 'rs', function_call: 'fc', web_search_call: 'ws' },
  ...{ image_generation_call: 'ig', custom_tool_call: 'ctc' },
}
/** Items that a caller only returns unchanged. */
const HANDED_BACK = [
  ...['reasoning', 'web_search_call', 'image_generation_call', 'item_reference', 'compaction'],
  ...['tool_search_call', 'tool_search_output', 'additional_tools'],
]
const CALLS = ['function_call', 'custom_tool_call']
const OUTPUTS = CALLS.map((type) => `${type}_output`)

export function invalid(param: string | null, message: string): SimulatedFailure {
  return new SimulatedFailure(400, 'invalid_request', message, param === null ? {} : { param })
}

export function missing(param: string): SimulatedFailure {
  return invalid(param, `Missing required parameter: '${param}'.`)
}

type Item = Record<string, unknown>

/**
 * Checks the input and its place behind the items `before` it, which the provider keeps. A string is what a user says.
 *
 * @throws {SimulatedFailure} 400 that names the item.
 */
export function checkInput(input: unknown, before: readonly Readonly<Item>[] = []): void {
  if (input === undefined) throw missing('input')
  const items = typeof input === 'string' ? [] : checkItems(input, before)
  for (const id of openCalls([...before, ...items]))
    throw invalid('input', `No tool output found for function call ${id}.`)
}

/** Checks items as `checkInput` does, but allows unanswered calls. Returns the items. */
export function checkItems(input: unknown, before: readonly Readonly<Item>[]): Item[] {
  if (!Array.isArray(input))
    throw invalid('input', "Invalid type for 'input': expected a string or an array.")
  const items = input.map((item, index) => readItem(item, `input[${index}]`))
  if (items.length === 0) throw invalid('input', "Invalid 'input': empty array. Expected at least one item.")
  openCalls([...before, ...items])
  const thought = items.findIndex(
    (item, index) => item.type === 'reasoning' && !isAssistants(items[index + 1]),
  )
  if (thought < 0) return items
  const id = items[thought]?.id
  throw invalid('input', `Item '${id}' of type 'reasoning' was provided without its required following item.`)
}

function readItem(value: unknown, path: string): Item {
  if (!isObject(value)) throw invalid(path, `Invalid type for '${path}': expected an object.`)
  const type = value.type ?? 'message'
  const prefix = typeof type === 'string' ? ID_PREFIXES[type] : undefined
  if (prefix !== undefined && typeof value.id === 'string' && !value.id.startsWith(prefix)) {
    throw invalid(
      `${path}.id`,
      `Invalid '${path}.id': '${value.id}'. Expected an ID that begins with '${prefix}'.`,
    )
  }
  if (type === 'message') checkMessage(value, path)
  else if (type === 'function_call') checkStrings(value, path, ['call_id', 'name', 'arguments'])
  else if (type === 'custom_tool_call') checkStrings(value, path, ['call_id', 'name', 'input'])
  else if (OUTPUTS.includes(String(type))) checkOutput(value, path)
  else if (type === 'reasoning' && !Array.isArray(value.summary)) throw missing(`${path}.summary`)
  else if (!HANDED_BACK.includes(String(type)))
    throw invalid(`${path}.type`, `Invalid value: '${type}'. Supported values are: ${supported()}.`)
  return { ...value, type }
}

function supported(): string {
  const types = ['message', ...CALLS, ...OUTPUTS, ...HANDED_BACK]
  return types.map((name) => `'${name}'`).join(', ')
}

function checkMessage(item: Item, path: string): void {
  const { role, content } = item
  if (role === undefined) throw missing(`${path}.role`)
  if (!ROLES.includes(String(role))) {
    const known = ROLES.map((name) => `'${name}'`).join(', ')
    throw invalid(path, `Invalid value: '${role}'. Supported values are: ${known}.`)
  }
  if (typeof content === 'string') return
  if (!Array.isArray(content)) throw missing(`${path}.content`)
  const known = PARTS[String(role)] ?? PARTS.other ?? []
  for (const [index, part] of content.entries()) checkPart(part, `${path}.content[${index}]`, known)
}

function checkPart(part: unknown, path: string, known: readonly string[]): void {
  const type = isObject(part) ? part.type : undefined
  if (!isObject(part) || !known.includes(String(type))) {
    const names = known.map((name) => `'${name}'`).join(' and ')
    throw invalid(path, `Invalid value: '${type}'. Supported values are: ${names}.`)
  }
  if ((type === 'input_text' || type === 'output_text') && typeof part.text !== 'string')
    throw missing(`${path}.text`)
  if (type === 'input_image') checkImage(part, path)
}

/** Takes the URL itself: the object of another interface is refused. */
function checkImage({ image_url: url, file_id: file }: Item, path: string): void {
  if (url === undefined && typeof file === 'string') return
  if (typeof url !== 'string')
    throw invalid(
      `${path}.image_url`,
      `Invalid type for '${path}.image_url': expected an image URL, but got an object instead.`,
    )
  if (!/^(https?:\/\/|data:image\/(png|jpeg|gif|webp);base64,)/.test(url))
    throw invalid(
      `${path}.image_url`,
      `Invalid '${path}.image_url'. Expected a valid URL, but got a value with an invalid format.`,
    )
}

function checkOutput(item: Item, path: string): void {
  checkStrings(item, path, ['call_id'])
  if (typeof item.output === 'string') return
  if (!Array.isArray(item.output)) throw missing(`${path}.output`)
  for (const [index, part] of item.output.entries())
    checkPart(part, `${path}.output[${index}]`, PARTS.other ?? [])
}

function checkStrings(item: Item, path: string, fields: readonly string[]): void {
  for (const field of fields) {
    if (item[field] === undefined) throw missing(`${path}.${field}`)
    if (typeof item[field] !== 'string')
      throw invalid(`${path}.${field}`, `Invalid type for '${path}.${field}': expected a string.`)
  }
}

/** Lists the ids of calls without an output. @throws {SimulatedFailure} 400 for an output without a call */
function openCalls(items: readonly Readonly<Item>[]): Set<unknown> {
  const open = new Set<unknown>()
  for (const { type, call_id: id } of items) {
    if (CALLS.includes(String(type))) open.add(id)
    if (OUTPUTS.includes(String(type)) && !open.delete(id))
      throw invalid('input', `No tool call found for function call output with call_id ${id}.`)
  }
  return open
}

/** Returns whether an item can follow reasoning: it must be the model's. */
function isAssistants(item: Item | undefined): boolean {
  if (item === undefined) return false
  return item.type === 'message' ? item.role === 'assistant' : !OUTPUTS.includes(String(item.type))
}
