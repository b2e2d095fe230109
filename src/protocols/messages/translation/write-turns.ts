/** Writes the turns of a conversation for the messages protocol. See docs/translation.md, "The request". */
import { Buffer } from 'node:buffer'
import type {
  Conversation,
  FileSource,
  GivenFile,
  Reasoning,
  SaidText,
  ToolCall,
  ToolResult,
  TurnPart,
} from '../../../../schemas/chat/conversation.ts'
import { invalidField } from '../../request/client-json.ts'
import type { InlineFile } from '../../translate/data-uri.ts'
import type { DroppedFields } from '../../translate/dropped-fields.ts'
import { type FetchedFiles, toTypedFile } from '../../translate/linked-files.ts'
import { parseArguments } from '../../translate/tool-arguments.ts'
import { customArguments, flatName } from '../../translate/tool-names.ts'
import { type Block, type Turn, Turns, withoutBlank } from './turns.ts'

const IMAGE_TYPES: ReadonlySet<string> = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])
const PDF = 'application/pdf'
/** Text under a media type of another name. */
const TEXT_TYPES: ReadonlySet<string> = new Set([
  'application/json',
  'application/xml',
  'application/yaml',
  'application/x-yaml',
  'application/javascript',
])
const UTF8 = new TextDecoder('utf-8', { fatal: true })

interface WrittenTurns {
  readonly system: readonly Block[]
  readonly turns: readonly Turn[]
}

/**
 * @param fetched the files that the upstream does not fetch itself
 * @throws Failure `invalid_request` with a message that names the field
 */
export function writeTurns(
  { instructions, turns }: Conversation,
  fetched: FetchedFiles,
  dropped: DroppedFields,
): WrittenTurns {
  const all = new Turns()
  // Pictures of earlier answers are refused in the model's own turn.
  const writeTurnPart = (role: Turn['role'], part: TurnPart): Block[] => {
    if (role === 'user' || !('source' in part)) return writePart(part, fetched, dropped)
    dropped.add(part.field ?? part.path)
    return []
  }
  for (const { role, parts } of turns)
    all.add(role, withoutBlank(parts.flatMap((part) => writeTurnPart(role, part))))
  return { system: withoutBlank(instructions.map(writeText)), turns: all.all() }
}

const markBlock = (block: Block, { cache }: Pick<SaidText, 'cache'>): Block =>
  cache === undefined ? block : { ...block, cache_control: cache }

const writeText = (part: SaidText): Block => markBlock({ type: 'text', text: part.text }, part)

function writePart(part: TurnPart, fetched: FetchedFiles, dropped: DroppedFields): Block[] {
  switch (part.type) {
    case 'text':
      return [writeText(part)]
    case 'refusal':
      return [{ type: 'text', text: part.text }]
    case 'reasoning':
      return writeReasoning(part)
    case 'tool_call':
      return [markBlock(writeCall(part), part)]
    case 'tool_result':
      return [markBlock(writeResult(part, fetched, dropped), part)]
    default:
      return [writeFile(part, fetched, dropped)]
  }
}

/** Returns a block. The vendor refuses reasoning without its own signature. */
function writeReasoning({ text, seal }: Reasoning): Block[] {
  if (seal?.protocol !== 'messages') return []
  const { data, isRedacted, text: proved = text } = seal
  return isRedacted === true
    ? [{ type: 'redacted_thinking', data }]
    : [{ type: 'thinking', thinking: proved, signature: data }]
}

const writeCall = (call: ToolCall): Block => ({
  type: 'tool_use',
  id: toolUseId(call.id),
  name: flatName(call),
  input: parseArguments(call.kind === 'custom' ? customArguments(call.input) : call.input, call.path),
})

function writeResult(result: ToolResult, fetched: FetchedFiles, dropped: DroppedFields): Block {
  const block = {
    type: 'tool_result',
    tool_use_id: toolUseId(result.callId),
    ...(result.isError && { is_error: true }),
  }
  const content = withoutBlank(result.content.flatMap((part) => writePart(part, fetched, dropped)))
  const [first] = result.content
  if (content.length === 0) return block
  return { ...block, content: result.isPlain && first?.type === 'text' ? first.text : content }
}

/** Ids of other upstreams may hold characters that this one refuses; both ends of a call are renamed alike. */
const toolUseId = (id: string): string =>
  id.replaceAll(/[^a-zA-Z0-9_-]/g, (char) => `_${char.charCodeAt(0).toString(16)}`)

function writeFile(part: GivenFile, fetched: FetchedFiles, dropped: DroppedFields): Block {
  const { type, path, detail, filename, source } = part
  if (type === 'audio' || type === 'video') throw invalidField(path, `this model does not take ${type}`)
  if (detail !== undefined) dropped.add(detail.field)
  const block = writeSource(source, type === 'image' ? 'image' : 'document', path, fetched)
  const titled = block.type === 'document' && filename !== undefined ? { ...block, title: filename } : block
  return markBlock(titled, part)
}

function writeSource(
  source: FileSource,
  type: 'image' | 'document',
  path: string,
  fetched: FetchedFiles,
): Block {
  if (source.type === 'inline') return writeInline(source, path)
  const { url } = source
  const file = fetched.get(url)
  if (file === undefined) return { type, source: { type: 'url', url } }
  return writeInline(toTypedFile(file, { url, path }), path)
}

function writeInline({ mediaType, base64 }: InlineFile, path: string): Block {
  const source = { type: 'base64', media_type: mediaType, data: base64 }
  if (IMAGE_TYPES.has(mediaType)) return { type: 'image', source }
  if (mediaType === PDF) return { type: 'document', source }
  const text = isText(mediaType) ? decodeText(base64) : null
  if (text === null) throw invalidField(path, 'this model takes files of JPEG, PNG, GIF, WebP, PDF and text')
  return { type: 'document', source: { type: 'text', media_type: 'text/plain', data: text } }
}

const isText = (mediaType: string): boolean => mediaType.startsWith('text/') || TEXT_TYPES.has(mediaType)

/** Returns the text; null for bytes that are no UTF-8. */
function decodeText(base64: string): string | null {
  try {
    return UTF8.decode(Buffer.from(base64, 'base64'))
  } catch {
    return null
  }
}
