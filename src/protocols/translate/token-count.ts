/**
 * Estimates the tokens of a prompt with a tokenizer, for channels that cannot count it themselves. See docs/translation.md,
 * "Counting tokens".
 */
import { Buffer } from 'node:buffer'
import { createRequire } from 'node:module'
import type { Conversation, GivenFile, OfferedTool, TurnPart } from '../../../schemas/chat/conversation.ts'
import type { ModelEntry } from '../../../schemas/config/catalog.ts'
import { IMAGE_HEAD_BYTES, readImageFacts } from '../../core/media/image-size.ts'

/** The most tokens of one file, by its kind. */
export type FileTokens = ModelEntry['estimate']

const ASSUMED = {
  image: 'image_tokens',
  audio: 'audio_tokens',
  file: 'file_tokens',
  video: 'file_tokens',
} as const

export const TOKENIZER = 'o200k_base'
/** Marks where each message, tool, call and result begins and ends. */
const FRAME_TOKENS = 4
const PIXELS_PER_TOKEN = 750
/** Of base64. */
const CHARS_PER_FILE_TOKEN = 4
/** Base64 has four characters for three bytes. */
const HEAD_CHARS = (IMAGE_HEAD_BYTES / 3) * 4
/** Characters beyond count as many tokens as these: random ones take ten times as long as words. */
const MAX_READ_CHARS = 500_000
/** The tokenizer takes quadratic time in the length of what has no break. */
const LONG_RUN = /(\S{256}|\s{256})/u

/** Nothing in a prompt is a special token: its text counts as it stands. */
const AS_TEXT = { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() }

/** Returns the estimated number of tokens. */
export function estimateTokens(
  { instructions, turns, tools, settings }: Conversation,
  files: FileTokens,
): number {
  const format = settings.format?.value
  const parts = [...instructions, ...turns.flatMap((turn) => turn.parts)]
  const texts = [
    ...parts.flatMap(listTexts),
    ...tools.flatMap(listToolTexts),
    ...(format?.type === 'schema' ? [JSON.stringify(format.schema)] : []),
  ]
  const frames =
    Number(instructions.length > 0) +
    turns.length +
    tools.filter(isCounted).length +
    parts.filter(isTool).length
  const fileTokens = listFiles(parts).reduce((sum, file) => sum + countFile(file, files), 0)
  return countTexts(texts) + frames * FRAME_TOKENS + fileTokens
}

const isTool = ({ type }: TurnPart): boolean => type === 'tool_call' || type === 'tool_result'
/** Of other tools the upstream has its own words, or they are left out. */
const isCounted = ({ type }: OfferedTool): boolean => type === 'function' || type === 'custom'

function listTexts(part: TurnPart): string[] {
  switch (part.type) {
    case 'tool_call':
      return [part.name, part.input]
    case 'tool_result':
      return part.content.flatMap(listTexts)
    case 'text':
    case 'refusal':
    case 'reasoning':
      return [part.text]
    default:
      return []
  }
}

function listToolTexts(tool: OfferedTool): string[] {
  if (tool.type !== 'function' && tool.type !== 'custom') return []
  const shape = tool.type === 'function' ? tool.schema : tool.format
  return [tool.name, tool.description ?? '', shape === null ? '' : JSON.stringify(shape)]
}

const listFiles = (parts: readonly TurnPart[]): GivenFile[] =>
  parts.flatMap((part) =>
    'source' in part ? [part] : part.type === 'tool_result' ? listFiles(part.content) : [],
  )

/** Counts a file as a model assumes it, or as less where its size says so: an image by its pixels, any other by its bytes. */
function countFile({ type, source }: GivenFile, files: FileTokens): number {
  const most = files[ASSUMED[type]]
  if (source.type === 'link') return most
  if (type !== 'image') return Math.min(most, Math.ceil(source.base64.length / CHARS_PER_FILE_TOKEN))
  const facts = readImageFacts(Buffer.from(source.base64.slice(0, HEAD_CHARS), 'base64'))
  return facts === null ? most : Math.min(most, Math.ceil((facts.width * facts.height) / PIXELS_PER_TOKEN))
}

/** Loads the tokenizer with the first text: it takes tens of MB. */
function countTexts(texts: readonly string[]): number {
  const { countTokens } = createRequire(import.meta.url)(
    'gpt-tokenizer/encoding/o200k_base',
  ) as typeof import('gpt-tokenizer/encoding/o200k_base')
  let tokens = 0
  let readChars = 0
  let chars = 0
  for (const text of texts) {
    const read = text.slice(0, MAX_READ_CHARS - readChars)
    for (const piece of read.split(LONG_RUN)) tokens += countTokens(piece, AS_TEXT)
    readChars += read.length
    chars += text.length
  }
  return chars === readChars ? tokens : Math.ceil(tokens * (chars / readChars))
}
