/** Writes the turns of a conversation for the generate-content protocol. See docs/translation.md, "The request". */
import type {
  Conversation,
  GivenFile,
  SaidText,
  Seal,
  ToolCall,
  TurnPart,
} from '../../../../schemas/chat/conversation.ts'
import { parseRawJson } from '../../../core/json/exact.ts'
import { toText } from '../../loose.ts'
import { invalidField } from '../../request/client-json.ts'
import type { DroppedFields } from '../../translate/dropped-fields.ts'
import { type FetchedFiles, toTypedFile } from '../../translate/linked-files.ts'
import { parseArguments } from '../../translate/tool-arguments.ts'
import { customArguments, flatName } from '../../translate/tool-names.ts'
import { ContentTurns, type WireContent, type WirePart } from './turns.ts'

interface ContentOptions {
  readonly fetched: FetchedFiles
  /** The model refuses a first call without the signature of its thought. */
  readonly needsSignatures: boolean
}

interface WrittenContents {
  /** The parts of `systemInstruction`. */
  readonly instruction: readonly WirePart[]
  readonly contents: readonly WireContent[]
}

/** The vendor's signature for calls that other models made, and for clients that lost the signature. */
const NO_SIGNATURE = 'skip_thought_signature_validator'

/** @throws Failure `invalid_request` with a message that names the field */
export function writeContents(
  { instructions, turns }: Conversation,
  options: ContentOptions,
  dropped: DroppedFields,
): WrittenContents {
  const written = new ContentTurns()
  /** By id: its place among the calls of the conversation, and its name. */
  const calls = new Map<string, { readonly place: number; readonly name: string }>()
  for (const { role, parts } of turns) {
    const turn = new TurnWriter(options, dropped)
    for (const part of parts) {
      if (part.type === 'tool_result') {
        const call = calls.get(part.callId)
        if (call === undefined) throw invalidField(part.path, 'no call before it has this id')
        const said = part.content.flatMap((each) => turn.readable(each))
        const files = said.filter(({ text }) => text === undefined)
        written.answer(call.place, functionResponse(call.name, joinText(said), part.isError), files)
      } else turn.add(part)
      if (part.type === 'tool_call') calls.set(part.id, { place: calls.size, name: flatName(part) })
    }
    written.add(role === 'user' ? 'user' : 'model', turn.parts)
  }
  return { instruction: instructions.flatMap(({ text }) => textPart(text)), contents: written.all() }
}

const textPart = (text: string): WirePart[] => (text === '' ? [] : [{ text }])
const joinText = (parts: readonly WirePart[]): string => parts.map(({ text }) => toText(text)).join('')

/** Writes the parts of one turn. Reasoning is not sent back, except for its signature, which goes with the next part. */
class TurnWriter {
  readonly parts: WirePart[] = []
  readonly #options: ContentOptions
  readonly #dropped: DroppedFields
  #signature = ''
  #calls = 0

  constructor(options: ContentOptions, dropped: DroppedFields) {
    this.#options = options
    this.#dropped = dropped
  }

  add(part: Exclude<TurnPart, { type: 'tool_result' }>): void {
    switch (part.type) {
      case 'text':
      case 'refusal':
        this.parts.push(...textPart(part.text).map((written) => this.#sign(written, null)))
        break
      case 'reasoning':
        this.#signature = ownSignature(part.seal) || this.#signature
        break
      case 'tool_call':
        this.parts.push(this.#call(part))
        break
      default:
        this.parts.push(...this.readable(part).map((written) => this.#sign(written, part.seal ?? null)))
    }
  }

  readable(part: SaidText | GivenFile): WirePart[] {
    if (part.type === 'text') return textPart(part.text)
    if (part.detail !== undefined) this.#dropped.add(part.detail.field)
    return [writeFile(part, this.#options.fetched)]
  }

  #sign(part: WirePart, seal: Seal | null): WirePart {
    const signature = ownSignature(seal) || this.#signature
    this.#signature = ''
    return signature === '' ? part : { ...part, thoughtSignature: signature }
  }

  #call(call: ToolCall): WirePart {
    const input = call.kind === 'custom' ? customArguments(call.input) : call.input
    const part = { functionCall: { name: flatName(call), args: parseArguments(input, call.path) } }
    const isFirst = this.#calls++ === 0
    const signed = this.#sign(part, call.seal)
    const isUnsigned = isFirst && this.#options.needsSignatures && signed === part
    return isUnsigned ? { ...part, thoughtSignature: NO_SIGNATURE } : signed
  }
}

const ownSignature = (seal: Seal | null): string => (seal?.protocol === 'generate-content' ? seal.data : '')

function writeFile({ source, path }: GivenFile, fetched: FetchedFiles): WirePart {
  if (source.type === 'inline') return { inlineData: { mimeType: source.mediaType, data: source.base64 } }
  const { url } = source
  const file = fetched.get(url)
  if (file === undefined) throw invalidField(path, 'the file at this URL could not be fetched')
  const { mediaType, base64 } = toTypedFile(file, { url, path })
  return { inlineData: { mimeType: mediaType, data: base64 } }
}

/** Returns a tool's response. It must be an object: the text of one is parsed, any other is put into one. */
function functionResponse(name: string, text: string, isError: boolean): WirePart {
  const response = isError ? { error: text } : (parseObject(text) ?? { output: text })
  return { functionResponse: { name, response } }
}

function parseObject(text: string): object | null {
  if (!text.trimStart().startsWith('{')) return null
  try {
    return parseRawJson(text) as object
  } catch {
    return null
  }
}
