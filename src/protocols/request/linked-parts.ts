/**
 * Images, files and audio that a request gives by URL, and images and audio that are in it: what their tokens are, only
 * the upstream learns.
 */
import { isObject, type LooseObject, toList, toText } from '../loose.ts'

type Kind = 'image' | 'file' | 'audio'
type Counts = Readonly<Record<Kind, number>>

/** Number of parts of each kind that are given by URL. */
export interface LinkedParts extends Counts {
  /**
   * URLs that the upstream would connect to for this request: the links of these parts, and of servers for its tools.
   */
  readonly urls: readonly string[]
  /** Absent on most calls. */
  readonly inline?: InlineParts
}

/** Number of images and pieces of audio that are in the request as base64, and the length of that. */
interface InlineParts extends Counts {
  readonly bytes: number
}

export const NO_LINKS: LinkedParts = { image: 0, file: 0, audio: 0, urls: [] }

/** Names under which links of the chat-completions and responses protocols can be: a body with one is read whole. */
export const LINK_FIELDS = ['image_url', 'file_url', 'video_url', 'audio_url', 'file'] as const

/** Fields with the client's own data: upstreams follow no link in it. */
const OPAQUE: ReadonlySet<string> = new Set(['input', 'arguments', 'text', 'metadata', 'annotations'])
/** Results of an earlier search: the upstream reads the text, and follows no link in it. */
const FOUND = /_(search|fetch)_result$/
const INLINE = /^\s*data:/i
/** Readers of URLs skip control characters, take a backslash for a slash, and miss none. */
const LINK = /^[\p{Cc} ]*(?:[a-z][a-z0-9+.-]{0,20}:[\\/]|https?:)/iu
const LINK_NAME = /url$/i
/** Fields that hold content inline; some upstreams take a link there as well. */
const CONTENT_FIELDS: ReadonlySet<string> = new Set(['file_data', 'data', 'file', 'image', 'video', 'audio'])

/** An earlier answer has its picture in `result`. */
const INLINE_FIELDS: ReadonlySet<string> = new Set([...CONTENT_FIELDS, 'result'])
/** A shorter one counts by its bytes. */
const MIN_INLINE_CHARS = 4096
const BASE64 = /^\s*(data:[\w.+/;=-]{0,200};base64,)?[A-Za-z0-9+/_=-]+$/

const KINDS: Readonly<Record<string, Kind>> = {
  image_url: 'image',
  input_image: 'image',
  image_generation_call: 'image',
  image: 'image',
  input_audio: 'audio',
  audio: 'audio',
  audio_url: 'audio',
}
const toKind = (name: unknown): Kind | undefined =>
  typeof name === 'string' && Object.hasOwn(KINDS, name) ? KINDS[name] : undefined

function isLink(name: string, text: string): boolean {
  if (LINK_NAME.test(name)) return text !== '' && !INLINE.test(text)
  return CONTENT_FIELDS.has(name) && LINK.test(text)
}

/**
 * Checks only the beginning: no upstream reads a text that is base64 there and not behind it. A file may be a text, whose
 * bytes are tokens.
 */
const isInline = (name: string, text: string, kind: Kind): boolean =>
  kind !== 'file' &&
  text.length >= MIN_INLINE_CHARS &&
  (LINK_NAME.test(name) || INLINE_FIELDS.has(name)) &&
  BASE64.test(text.slice(0, MIN_INLINE_CHARS))

/** Returns the kind of a part by the type of its bytes, such as `image/png`. */
const kindOfBytes = ({ mimeType, mime_type }: LooseObject): Kind | undefined =>
  toKind((toText(mimeType) || toText(mime_type)).split('/', 1)[0])

/** Fields of a message that hold parts: `images` are those of an earlier answer. */
const PART_FIELDS = ['content', 'output', 'images'] as const

/** Finds links and inline files in the parts of parsed messages, at any depth, and in the tools. */
export const findLinkedParts = (messages: unknown, tools: readonly unknown[] = []): LinkedParts =>
  findParts(messages, tools, false)

function findParts(messages: unknown, tools: readonly unknown[], isParts: boolean): LinkedParts {
  const counts: Record<Kind, number> = { image: 0, file: 0, audio: 0 }
  const inline = { image: 0, file: 0, audio: 0, bytes: 0 }
  const urls = listServerUrls(tools)
  const visit = (name: string, value: unknown, kind: Kind): void => {
    if (typeof value === 'string') {
      if (isLink(name, value)) {
        counts[kind]++
        urls.push(value)
      } else if (isInline(name, value, kind)) {
        inline[kind]++
        inline.bytes += value.length
      }
    } else if (Array.isArray(value)) for (const item of value) visit(name, item, kind)
    else if (isObject(value) && !(typeof value.type === 'string' && FOUND.test(value.type)))
      // Of a text source, `data` is the text.
      for (const [field, inner] of Object.entries(value))
        if (!OPAQUE.has(field) && !(field === 'data' && value.type === 'text'))
          visit(field, inner, toKind(field) ?? toKind(value.type) ?? kindOfBytes(value) ?? kind)
  }
  for (const message of toList(messages))
    if (isObject(message)) {
      for (const field of PART_FIELDS) visit(field, message[field], 'file')
      if (typeof message.result === 'string') visit('result', message.result, toKind(message.type) ?? 'file')
      if (isParts) visit('parts', message.parts, 'file')
    }
  for (const tool of tools) if (isObject(tool)) visit(MASK, tool[MASK], 'image')
  return { ...counts, urls, ...(inline.bytes > 0 && { inline }) }
}

/** Fields of the generate-content protocol with data of functions: upstreams follow no link in them. */
const FUNCTION_DATA: ReadonlySet<string> = new Set(['args', 'response'])
const FILE_URI = /^file_?uri$/i

/** Finds the files in a content, or in several, of the generate-content protocol: inline, and by a public link. */
export function findFileParts(contents: unknown): LinkedParts {
  const counts: Record<Kind, number> = { image: 0, file: 0, audio: 0 }
  const urls: string[] = []
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const item of value) visit(item)
    else if (isObject(value))
      for (const [name, inner] of Object.entries(value))
        if (FILE_URI.test(name) && typeof inner === 'string') {
          counts[kindOfBytes(value) ?? 'file']++
          urls.push(inner)
        } else if (!FUNCTION_DATA.has(name)) visit(inner)
  }
  visit(contents)
  const { inline } = findParts(contents, [], true)
  if (urls.length === 0 && inline === undefined) return NO_LINKS
  return { ...counts, urls, ...(inline !== undefined && { inline }) }
}

/** Of the tool that makes images: what of one it may change. */
const MASK = 'input_image_mask'

/** Returns the links of the servers that the upstream calls for these tools. */
function listServerUrls(tools: readonly unknown[], found: string[] = []): string[] {
  for (const tool of tools) {
    if (!isObject(tool)) continue
    for (const url of [tool.url, tool.server_url]) if (typeof url === 'string') found.push(url)
    listServerUrls(toList(tool.tools), found)
  }
  return found
}
