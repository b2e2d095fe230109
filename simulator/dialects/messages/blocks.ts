/** Checks content blocks of the messages interface: their types, places and fields. */

import { createHash } from 'node:crypto'
import { isObject } from '../../dialect.ts'
import { invalid, requireString, strictObject } from './fields.ts'

const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp']
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/
const TOOL_USE_ID = /^[a-zA-Z0-9_-]+$/
const NON_EMPTY = 'text content blocks must be non-empty'
const NON_BLANK = 'text content blocks must contain non-whitespace text'

export type Block = Record<string, unknown> & { readonly type: string }

type Role = 'user' | 'assistant'
type BlockRule = {
  readonly roles: readonly Role[]
  readonly fields: readonly string[]
  readonly check: (block: Block, path: string) => void
}

const BOTH: readonly Role[] = ['user', 'assistant']

const TOOL_USE: BlockRule = {
  roles: ['assistant'],
  fields: ['id', 'name', 'input', 'cache_control', 'caller'],
  check: checkToolUse,
}

const RULES: Readonly<Record<string, BlockRule>> = {
  text: { roles: BOTH, fields: ['text', 'cache_control', 'citations'], check: checkText },
  image: { roles: ['user'], fields: ['source', 'cache_control'], check: checkImage },
  document: {
    roles: ['user'],
    fields: ['source', 'title', 'context', 'citations', 'cache_control'],
    check: checkDocument,
  },
  tool_result: {
    roles: ['user'],
    fields: ['tool_use_id', 'content', 'is_error', 'cache_control'],
    check: checkToolResult,
  },
  tool_use: TOOL_USE,
  thinking: { roles: ['assistant'], fields: ['thinking', 'signature'], check: checkThinking },
  redacted_thinking: { roles: ['assistant'], fields: ['data'], check: checkRedactedThinking },
  server_tool_use: TOOL_USE,
  advisor_tool_result: {
    roles: ['assistant'],
    fields: ['tool_use_id', 'content', 'cache_control'],
    check: (block, path) => requireString(block, 'tool_use_id', path),
  },
  fallback: { roles: ['assistant'], fields: ['from', 'to', 'trigger'], check: () => {} },
  web_search_tool_result: {
    roles: ['assistant'],
    fields: ['tool_use_id', 'content', 'cache_control', 'caller'],
    check: (block, path) => requireString(block, 'tool_use_id', path),
  },
}

/**
 * The blocks of a message's content; a string is one text block.
 *
 * @throws {SimulatedFailure} 400 that names the block.
 */
export function readBlocks(content: unknown, role: Role, path: string): Block[] {
  if (content === undefined) throw invalid(`${path}: Field required`)
  if (typeof content === 'string') {
    if (content !== '' && content.trim() === '') throw invalid(`messages: ${NON_BLANK}`)
    return content === '' ? [] : [{ type: 'text', text: content }]
  }
  if (!Array.isArray(content)) throw invalid(`${path}: Input should be a valid list`)
  return content.map((block: unknown, index) => readBlock(block, role, `${path}.${index}`))
}

/** System blocks: a string, or texts. @throws {SimulatedFailure} 400 */
export function checkSystem(system: unknown): void {
  if (system === undefined || typeof system === 'string') return
  if (!Array.isArray(system)) throw invalid('system: Input should be a valid list')
  for (const [index, block] of system.entries()) {
    const path = `system.${index}`
    const { type } = strictObject(block, path, ['type', 'text', 'cache_control', 'citations'])
    if (type !== 'text') throw invalid(`${path}.type: Input should be 'text'`)
    checkText(block as Block, path, 'system')
  }
}

function readBlock(value: unknown, role: Role, path: string): Block {
  const type = isObject(value) ? value.type : undefined
  if (typeof type !== 'string') throw invalid(`${path}.type: Field required`)
  const rule = Object.hasOwn(RULES, type) ? RULES[type] : undefined
  if (rule === undefined) {
    const known = Object.keys(RULES).map((name) => `'${name}'`)
    throw invalid(
      `${path}: Input tag '${type}' found using 'type' does not match any of the expected tags: ${known}`,
    )
  }
  if (!rule.roles.includes(role)) {
    throw invalid(`${path}: \`${type}\` blocks can only be in \`${rule.roles[0]}\` messages`)
  }
  const block = strictObject(value, `${path}.${type}`, ['type', ...rule.fields]) as Block
  rule.check(block, `${path}.${type}`)
  return block
}

function checkText(block: Block, path: string, place = 'messages'): void {
  const text = requireString(block, 'text', path)
  if (text === '') throw invalid(`${place}: ${NON_EMPTY}`)
  if (text.trim() === '') throw invalid(`${place}: ${NON_BLANK}`)
}

function checkImage(block: Block, path: string): void {
  const source = readSource(block, path)
  if (source.type !== 'base64') return
  const mediaType = requireString(source, 'media_type', `${path}.source.base64`)
  if (!IMAGE_TYPES.includes(mediaType)) {
    const known = IMAGE_TYPES.map((name) => `'${name}'`).join(', ')
    throw invalid(`${path}.source.base64.media_type: Input should be ${known}`)
  }
}

function checkDocument(block: Block, path: string): void {
  const source = readSource(block, path)
  const mediaType = source.media_type
  if (source.type === 'base64' && mediaType !== 'application/pdf')
    throw invalid(`${path}.source.base64.media_type: Input should be 'application/pdf'`)
  if (source.type === 'text' && mediaType !== 'text/plain')
    throw invalid(`${path}.source.text.media_type: Input should be 'text/plain'`)
}

function readSource(block: Block, path: string): Record<string, unknown> {
  const source = block.source
  if (!isObject(source)) throw invalid(`${path}.source: Field required`)
  if (source.type === 'base64') {
    const data = requireString(source, 'data', `${path}.source.base64`)
    if (!BASE64.test(data)) throw invalid(`${path}.source.base64.data: Input should be valid base64`)
  } else if (source.type === 'url') {
    const url = requireString(source, 'url', `${path}.source.url`)
    if (!/^https?:\/\//.test(url)) throw invalid(`${path}.source.url.url: Only HTTP(S) URLs are supported`)
  } else if (source.type !== 'text' && source.type !== 'content' && source.type !== 'file') {
    throw invalid(
      `${path}.source: Input tag '${source.type}' found using 'type' does not match any of the expected tags`,
    )
  }
  return source
}

function checkToolResult(block: Block, path: string): void {
  requireString(block, 'tool_use_id', path)
  const { content } = block
  if (content === undefined || typeof content === 'string') return
  if (!Array.isArray(content)) throw invalid(`${path}.content: Input should be a valid list`)
  for (const [index, part] of content.entries()) {
    const { type } = readBlock(part, 'user', `${path}.content.${index}`)
    if (type === 'tool_result')
      throw invalid(`${path}.content.${index}: Input tag 'tool_result' is not expected here`)
  }
}

function checkToolUse(block: Block, path: string): void {
  const id = requireString(block, 'id', path)
  if (!TOOL_USE_ID.test(id)) throw invalid(`${path}.id: String should match pattern '${TOOL_USE_ID.source}'`)
  requireString(block, 'name', path)
  if (!isObject(block.input)) throw invalid(`${path}.input: Input should be a valid dictionary`)
}

function checkThinking(block: Block, path: string): void {
  const thinking = requireString(block, 'thinking', path)
  if (requireString(block, 'signature', path) !== sign(thinking))
    throw invalid(`${path}: Invalid \`signature\` in \`thinking\` block`)
}

function checkRedactedThinking(block: Block, path: string): void {
  if (!isSealed(requireString(block, 'data', path)))
    throw invalid(`${path}: Invalid \`data\` in \`redacted_thinking\` block`)
}

const SECRET = 'simulated thinking'
const SEALED_PREFIX = 'sealed by the simulated provider: '

export function sign(thinking: string): string {
  return createHash('sha512').update(`${SECRET}\n${thinking}`).digest('base64')
}

/** Returns reasoning that only the provider can read. */
export function seal(id: string): string {
  return Buffer.from(SEALED_PREFIX + id).toString('base64')
}

export function isSealed(data: string): boolean {
  return Buffer.from(data, 'base64').toString('utf8').startsWith(SEALED_PREFIX)
}
