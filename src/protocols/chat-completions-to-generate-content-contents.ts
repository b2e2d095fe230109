/**
 * The conversation of a chat-completions request as the generate-content protocol has it.
 * Source: translation, "Request, to `generate-content`".
 */
import type {
  CalledTool,
  ConversationMessage,
  ReadablePart,
  SpokenPart,
} from '../../schemas/chat-completions-conversation.ts'
import { parseWrittenJson } from '../core/exact-json.ts'
import { invalidField } from './client-json.ts'
import { isDataUri, readDataUri } from './data-uri.ts'
import type { FetchedFile } from './dialect.ts'
import { ContentTurns, type WireContent, type WirePart } from './generate-content-turns.ts'
import { fieldsOf, textOf } from './loose.ts'
import { parsedArguments } from './tool-arguments.ts'

export interface ConversationOptions {
  /** The pictures of `picturesOf`, by URL. */
  readonly fetched: ReadonlyMap<string, FetchedFile>
  /** The model refuses a first call without the signature of its thought. */
  readonly needsSignatures: boolean
}

export interface WireConversation {
  /** The parts of `systemInstruction`. */
  readonly instruction: readonly WirePart[]
  readonly contents: readonly WireContent[]
}

/** What the vendor has for calls of other models' making, and of clients that lost the signature. */
const NO_SIGNATURE = 'skip_thought_signature_validator'
/** Never registered, often sent. */
const MISNAMED_JPEG = 'image/jpg'
/** Decisions, "Media", on a URL that a caller gives. */
const MAX_URL_CHARS = 2048

/** Where a call stands in the conversation, and what it calls. */
interface KnownCall {
  readonly place: number
  readonly name: string
}

/** @throws Failure `invalid_request` with a message that names the field */
export function translateConversation(
  messages: readonly ConversationMessage[],
  options: ConversationOptions,
): WireConversation {
  const instruction: WirePart[] = []
  const turns = new ContentTurns()
  const calls = new Map<string, KnownCall>()
  let place = 0
  for (const [index, message] of messages.entries()) {
    const path = `messages[${index}]`
    switch (message.role) {
      case 'system':
      case 'developer':
        instruction.push(...readableParts(message.content, path, options))
        break
      case 'user':
        turns.add('user', readableParts(message.content, path, options))
        break
      case 'assistant':
        turns.add('model', assistantParts(message, path, options))
        for (const { id, function: called } of message.tool_calls ?? [])
          calls.set(id, { place: place++, name: called.name })
        break
      case 'tool': {
        const call = calls.get(message.tool_call_id)
        if (call === undefined) throw invalidField(`${path}.tool_call_id`, 'no call before it has this id')
        const parts = readableParts(message.content ?? '', path, options)
        const files = parts.filter((part) => part.text === undefined)
        turns.answer(call.place, functionResponse(call.name, textIn(parts)), files)
      }
    }
  }
  return { instruction, contents: turns.all() }
}

const textPart = (text: string): WirePart[] => (text === '' ? [] : [{ text }])
const textIn = (parts: readonly WirePart[]): string => parts.map(({ text }) => textOf(text)).join('')

function readableParts(
  content: string | readonly ReadablePart[],
  path: string,
  options: ConversationOptions,
): WirePart[] {
  if (typeof content === 'string') return textPart(content)
  return content.flatMap((part, index) => readablePart(part, `${path}.content[${index}]`, options))
}

function readablePart(part: ReadablePart, path: string, { fetched }: ConversationOptions): WirePart[] {
  switch (part.type) {
    case 'text':
      return textPart(part.text)
    case 'image_url': {
      const { url, path: at } = pictureOf(part, path)
      if (isDataUri(url)) return [inlineData(url, at)]
      const file = fetched.get(checkedUrl(url, at))
      if (file === undefined) throw invalidField(at, 'the file at this URL could not be fetched')
      return [{ inlineData: { mimeType: file.mediaType, data: file.base64 } }]
    }
    case 'file':
      return [inlineData(part.file.file_data, `${path}.file.file_data`)]
  }
}

type Picture = Extract<ReadablePart, { type: 'image_url' }>

const pictureOf = ({ image_url: image }: Picture, path: string): { url: string; path: string } =>
  typeof image === 'string'
    ? { url: image, path: `${path}.image_url` }
    : { url: image.url, path: `${path}.image_url.url` }

function checkedUrl(url: string, path: string): string {
  if (url.length > MAX_URL_CHARS) throw invalidField(path, `it is longer than ${MAX_URL_CHARS} characters`)
  if (!/^https?:\/\//i.test(url))
    throw invalidField(path, 'it must be a data URI or begin with http:// or https://')
  return url
}

function inlineData(uri: string, path: string): WirePart {
  const file = readDataUri(uri)
  if (file === null) throw invalidField(path, 'it must be a base64 data URI that names its media type')
  const mimeType = file.mediaType === MISNAMED_JPEG ? 'image/jpeg' : file.mediaType
  return { inlineData: { mimeType, data: file.base64 } }
}

/**
 * The http(s) URLs of pictures, each once: the upstream does not fetch them.
 * @throws Failure `invalid_request` with a message that names the field
 */
export function picturesOf(messages: readonly ConversationMessage[]): readonly string[] {
  const urls = new Set<string>()
  for (const [index, message] of messages.entries()) {
    if ((message.role !== 'user' && message.role !== 'tool') || !Array.isArray(message.content)) continue
    for (const [at, part] of message.content.entries()) {
      if (part.type !== 'image_url') continue
      const { url, path } = pictureOf(part, `messages[${index}].content[${at}]`)
      if (!isDataUri(url)) urls.add(checkedUrl(url, path))
    }
  }
  return [...urls]
}

type Assistant = Extract<ConversationMessage, { role: 'assistant' }>

/** Thought is not taken back, but for the signatures of calls. */
function assistantParts(message: Assistant, path: string, options: ConversationOptions): WirePart[] {
  const { content, refusal } = message
  const said = typeof content === 'string' ? textPart(content) : (content ?? []).flatMap(spokenPart)
  const calls = (message.tool_calls ?? []).map((call, index) =>
    functionCall(call, `${path}.tool_calls[${index}]`, options.needsSignatures && index === 0),
  )
  return [...said, ...textPart(refusal ?? ''), ...calls]
}

function spokenPart(part: SpokenPart): WirePart[] {
  if (part.type === 'text') return textPart(part.text)
  return part.type === 'refusal' ? textPart(part.refusal) : []
}

function functionCall(call: CalledTool, path: string, needsSignature: boolean): WirePart {
  const args = parsedArguments(call.function.arguments ?? '', `${path}.function.arguments`)
  const given = signatureOf(call)
  const signature = given === '' && needsSignature ? NO_SIGNATURE : given
  return {
    functionCall: { name: call.function.name, args },
    ...(signature === '' ? {} : { thoughtSignature: signature }),
  }
}

/** Where `chat-completions-json.ts` put it, under whichever vendor's name; empty without one. */
function signatureOf({ extra_content: extra }: CalledTool): string {
  const signatures = Object.values(fieldsOf(extra)).map((more) => textOf(fieldsOf(more).thought_signature))
  return signatures.find((signature) => signature !== '') ?? ''
}

/** The response must be an object: the text of one is taken as that, any other is put into one. */
function functionResponse(name: string, text: string): WirePart {
  return { functionResponse: { name, response: objectIn(text) ?? { output: text } } }
}

function objectIn(text: string): object | null {
  if (!text.trimStart().startsWith('{')) return null
  try {
    return parseWrittenJson(text) as object
  } catch {
    return null
  }
}
