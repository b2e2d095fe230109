/**
 * The conversation of a chat-completions request as the messages protocol has it.
 * See docs/translation.md, "The request".
 */
import { Buffer } from 'node:buffer'
import type {
  CalledTool,
  ConversationMessage,
  ReadablePart,
  SpokenPart,
  TextPart,
} from '../../../../schemas/chat/chat-completions-conversation.ts'
import { parsedArguments } from '../../chat-completions/tool-arguments.ts'
import { type Block, type Turn, Turns, withoutBlank } from '../../messages/turns.ts'
import { invalidField } from '../../request/client-json.ts'
import { type InlineFile, isDataUri, readFileData } from '../data-uri.ts'
import { type FetchedFiles, isLink, namedUrl, normalised, typedFile } from '../linked-files.ts'

interface Conversation {
  readonly system: readonly Block[]
  readonly turns: readonly Turn[]
}

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

/**
 * @param fetched the files that the upstream does not fetch itself
 * @throws Failure `invalid_request` with a message that names the field
 */
export function translateConversation(
  messages: readonly ConversationMessage[],
  fetched: FetchedFiles,
): Conversation {
  const system: Block[] = []
  const turns = new Turns()
  for (const [index, message] of messages.entries()) {
    const path = `messages[${index}]`
    switch (message.role) {
      case 'system':
      case 'developer':
        system.push(...marked(withoutBlank(textBlocks(message.content)), message.cache_control))
        break
      case 'user':
        turns.add(
          'user',
          marked(withoutBlank(readableBlocks(message.content, path, fetched)), message.cache_control),
        )
        break
      case 'assistant':
        turns.add('assistant', assistantBlocks(message, path))
        break
      case 'tool':
        turns.add('user', marked([toolResult(message, path, fetched)], message.cache_control))
    }
  }
  return { system, turns: turns.all() }
}

/** Moves the cache marker of a whole message to its last block, where the cached part ends. */
function marked(blocks: Block[], marker: unknown): Block[] {
  const last = blocks.at(-1)
  if (marker == null || last === undefined || last.cache_control !== undefined) return blocks
  return [...blocks.slice(0, -1), { ...last, cache_control: marker }]
}

const withMarker = (block: Block, part: { readonly cache_control?: unknown }): Block =>
  part.cache_control == null ? block : { ...block, cache_control: part.cache_control }

const textBlock = (text: string): Block => ({ type: 'text', text })

const textBlocks = (content: string | readonly TextPart[]): Block[] =>
  typeof content === 'string'
    ? [textBlock(content)]
    : content.map((part) => withMarker(textBlock(part.text), part))

function readableBlocks(
  content: string | readonly ReadablePart[],
  path: string,
  fetched: FetchedFiles,
): Block[] {
  if (typeof content === 'string') return [textBlock(content)]
  return content.map((part, index) =>
    withMarker(readableBlock(part, `${path}.content[${index}]`, fetched), part),
  )
}

function readableBlock(part: ReadablePart, path: string, fetched: FetchedFiles): Block {
  switch (part.type) {
    case 'text':
      return textBlock(part.text)
    case 'image_url': {
      const { url, path: at } = namedUrl(part, path)
      return fileBlock(url, 'image', at, fetched)
    }
    case 'file': {
      const { file_data: data, filename } = part.file
      const at = `${path}.file.file_data`
      const block = isLink(data)
        ? fileBlock(normalised(data), 'document', at, fetched)
        : inlineBlock(data, filename, at)
      return block.type === 'document' && filename ? { ...block, title: filename } : block
    }
    case 'input_audio':
      throw invalidField(path, 'this model does not take audio')
    case 'video_url':
      throw invalidField(path, 'this model does not take video')
  }
}

function fileBlock(url: string, type: 'image' | 'document', path: string, fetched: FetchedFiles): Block {
  if (isDataUri(url)) return inlineBlock(url, null, path)
  const file = fetched.get(url)
  if (file !== undefined) return blockOf(typedFile(file, { url, path }), path)
  if (isLink(url)) return { type, source: { type: 'url', url } }
  throw invalidField(path, 'it must be a data URI or begin with http:// or https://')
}

function inlineBlock(data: string, filename: string | null | undefined, path: string): Block {
  const file = readFileData(data, filename)
  if (file === null) throw invalidField(path, 'it must be a base64 data URI that names its media type')
  return blockOf(file, path)
}

function blockOf({ mediaType, base64 }: InlineFile, path: string): Block {
  const source = { type: 'base64', media_type: mediaType, data: base64 }
  if (IMAGE_TYPES.has(mediaType)) return { type: 'image', source }
  if (mediaType === PDF) return { type: 'document', source }
  const text = isText(mediaType) ? textIn(base64) : null
  if (text === null) throw invalidField(path, 'this model takes files of JPEG, PNG, GIF, WebP, PDF and text')
  return { type: 'document', source: { type: 'text', media_type: 'text/plain', data: text } }
}

const isText = (mediaType: string): boolean => mediaType.startsWith('text/') || TEXT_TYPES.has(mediaType)

/** Returns the text; null for bytes that are no UTF-8. */
function textIn(base64: string): string | null {
  try {
    return UTF8.decode(Buffer.from(base64, 'base64'))
  } catch {
    return null
  }
}

type Assistant = Extract<ConversationMessage, { role: 'assistant' }>

function assistantBlocks(message: Assistant, path: string): Block[] {
  const { content, refusal } = message
  const said = typeof content === 'string' ? [textBlock(content)] : (content ?? []).flatMap(spokenBlock)
  const thoughts = (message.thinking_blocks ?? []).flatMap(spokenBlock)
  const refused = refusal == null ? [] : [textBlock(refusal)]
  const calls = (message.tool_calls ?? []).map((call, index) =>
    toolUse(call, `${path}.tool_calls[${index}].function.arguments`),
  )
  return marked(withoutBlank([...thoughts, ...said, ...refused, ...calls]), message.cache_control)
}

/** Returns a block. Reasoning without the vendor's signature is refused, so it is dropped. */
function spokenBlock(part: SpokenPart): Block[] {
  switch (part.type) {
    case 'text':
      return [withMarker(textBlock(part.text), part)]
    case 'refusal':
      return [textBlock(part.refusal)]
    case 'thinking': {
      const { thinking, signature } = part
      return signature ? [{ type: 'thinking', thinking: thinking ?? '', signature }] : []
    }
    case 'redacted_thinking':
      return part.data ? [{ type: 'redacted_thinking', data: part.data }] : []
  }
}

const toolUse = (call: CalledTool, path: string): Block => ({
  type: 'tool_use',
  id: toolUseId(call.id),
  name: call.function.name,
  input: parsedArguments(call.function.arguments ?? '', path),
})

type ToolMessage = Extract<ConversationMessage, { role: 'tool' }>

function toolResult(message: ToolMessage, path: string, fetched: FetchedFiles): Block {
  const content = withoutBlank(readableBlocks(message.content ?? [], path, fetched))
  const result = { type: 'tool_result', tool_use_id: toolUseId(message.tool_call_id) }
  if (content.length === 0) return result
  return { ...result, content: typeof message.content === 'string' ? message.content : content }
}

/** Ids of other upstreams may hold characters that this one refuses; both ends of a call are renamed alike. */
const toolUseId = (id: string): string =>
  id.replaceAll(/[^a-zA-Z0-9_-]/g, (char) => `_${char.charCodeAt(0).toString(16)}`)
