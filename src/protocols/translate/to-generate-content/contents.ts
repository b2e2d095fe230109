/**
 * The conversation of a chat-completions request as the generate-content protocol has it.
 * See docs/translation.md, "The request".
 */
import type {
  AnsweredImage,
  CalledTool,
  ConversationMessage,
  ReadablePart,
  SpokenPart,
} from '../../../../schemas/chat/chat-completions-conversation.ts'
import { parseRawJson } from '../../../core/json/exact.ts'
import { parsedArguments } from '../../chat-completions/tool-arguments.ts'
import { ContentTurns, type WireContent, type WirePart } from '../../generate-content/turns.ts'
import { fieldsOf, type LooseObject, textOf } from '../../loose.ts'
import { invalidField } from '../../request/client-json.ts'
import { readFileData } from '../data-uri.ts'
import { type FetchedFiles, linkIn, namedUrl, type Place, typedFile } from '../linked-files.ts'

interface ConversationOptions {
  readonly fetched: FetchedFiles
  /** The model refuses a first call without the signature of its thought. */
  readonly needsSignatures: boolean
}

interface WireConversation {
  /** The parts of `systemInstruction`. */
  readonly instruction: readonly WirePart[]
  readonly contents: readonly WireContent[]
}

/** The vendor's signature for calls that other models made, and for clients that lost the signature. */
const NO_SIGNATURE = 'skip_thought_signature_validator'

/** Place of a call in the conversation, and the called function. */
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
    case 'input_audio': {
      const { data, format } = part.input_audio
      return [inlineData(data, `audio.${format}`, `${path}.input_audio.data`)]
    }
    case 'file': {
      const { file_data: data, filename } = part.file
      const link = linkIn(part, path)
      return [
        link === null ? inlineData(data, filename, `${path}.file.file_data`) : fetchedData(link, fetched),
      ]
    }
    default: {
      const link = linkIn(part, path)
      const { url, path: at } = namedUrl(part, path)
      return [link === null ? inlineData(url, null, at) : fetchedData(link, fetched)]
    }
  }
}

function fetchedData({ url, path }: Place, fetched: ConversationOptions['fetched']): WirePart {
  const file = fetched.get(url)
  if (file === undefined) throw invalidField(path, 'the file at this URL could not be fetched')
  const { mediaType, base64 } = typedFile(file, { url, path })
  return { inlineData: { mimeType: mediaType, data: base64 } }
}

function inlineData(data: string, filename: string | null | undefined, path: string): WirePart {
  const file = readFileData(data, filename)
  if (file === null) throw invalidField(path, 'it must be a base64 data URI that names its media type')
  return { inlineData: { mimeType: file.mediaType, data: file.base64 } }
}

type Assistant = Extract<ConversationMessage, { role: 'assistant' }>

/** Returns the parts of an assistant's message. Reasoning is not sent back, except for the signatures of calls. */
function assistantParts(message: Assistant, path: string, options: ConversationOptions): WirePart[] {
  const { content, refusal } = message
  const said = typeof content === 'string' ? textPart(content) : (content ?? []).flatMap(spokenPart)
  const calls = (message.tool_calls ?? []).map((call, index) =>
    functionCall(call, `${path}.tool_calls[${index}]`, options.needsSignatures && index === 0),
  )
  const images = (message.images ?? []).flatMap((image, index) =>
    answeredImage(image, `${path}.images[${index}].image_url.url`),
  )
  return [...said, ...textPart(refusal ?? ''), ...images, ...calls]
}

/** Returns a picture of an earlier answer, to be edited. */
function answeredImage(image: AnsweredImage, path: string): WirePart[] {
  const signature = signatureOf(image)
  const part = inlineData(image.image_url.url, null, path)
  return [signature === '' ? part : { ...part, thoughtSignature: signature }]
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

/** Returns the signature in the fields that the answer used, under either vendor's name; empty without one. */
function signatureOf({ extra_content: extra }: LooseObject): string {
  const signatures = Object.values(fieldsOf(extra)).map((more) => textOf(fieldsOf(more).thought_signature))
  return signatures.find((signature) => signature !== '') ?? ''
}

/** Returns a tool's response. It must be an object: the text of one is parsed, any other is put into one. */
function functionResponse(name: string, text: string): WirePart {
  return { functionResponse: { name, response: objectIn(text) ?? { output: text } } }
}

function objectIn(text: string): object | null {
  if (!text.trimStart().startsWith('{')) return null
  try {
    return parseRawJson(text) as object
  } catch {
    return null
  }
}
