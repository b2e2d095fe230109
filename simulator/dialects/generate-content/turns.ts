/** Checks conversations as the generate-content interface does: parts, roles, and which responses answer which calls. */

import { isObject } from '../../dialect.ts'
import { invalid, knownFields, readList } from './schema.ts'

/** For a model whose name ends so, every step of the current turn must have its signature. */
const SIGNING_MODEL = /-sig$/
const SIGNATURE_PREFIX = 'simulated thought '
/** The vendor accepts it instead of a signature for calls that its models did not make. */
const SKIPPED_SIGNATURE = 'skip_thought_signature_validator'
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/
const FUNCTION_NAME = /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$/
const DATA_FIELDS = [
  ...['text', 'inlineData', 'fileData', 'functionCall', 'functionResponse'],
  ...['executableCode', 'codeExecutionResult'],
]
const PART_FIELDS = [...DATA_FIELDS, 'thought', 'thoughtSignature', 'videoMetadata', 'mediaResolution']

type Part = Record<string, unknown>
type Turn = { readonly role: 'user' | 'model'; readonly parts: readonly Part[] }

export function isSigning(model: string): boolean {
  return SIGNING_MODEL.test(model)
}

/** Returns the signature of a thought. */
export function thoughtSignature(id: string): string {
  return Buffer.from(SIGNATURE_PREFIX + id).toString('base64')
}

/** @throws {SimulatedFailure} 400 as the vendor would, in its words. */
export function checkContents(contents: unknown, model: string): void {
  const turns = readList(contents, 'contents').map(readTurn)
  if (turns.length === 0) throw invalid('* GenerateContentRequest.contents: contents is not specified\n')
  checkCalls(turns)
  if (isSigning(model)) checkSignatures(turns)
}

/** Only texts; a role is ignored. @throws {SimulatedFailure} 400 */
export function checkSystemInstruction(value: unknown): void {
  if (value === undefined) return
  const { parts } = knownFields(value, 'system_instruction', ['role', 'parts'])
  const listed = readList(parts, 'system_instruction.parts')
  if (listed.length === 0)
    throw invalid('* GenerateContentRequest.system_instruction.parts: must not be empty.\n')
  for (const [index, part] of listed.entries()) readPart(part, `system_instruction.parts[${index}]`)
}

function readTurn(content: unknown, index: number): Turn {
  const path = `contents[${index}]`
  const { role = 'user', parts } = knownFields(content, path, ['role', 'parts'])
  if (role !== 'user' && role !== 'model') throw invalid('Please use a valid role: user, model.')
  const listed = readList(parts, `${path}.parts`)
  if (listed.length === 0)
    throw invalid(`* GenerateContentRequest.${path}.parts: contents.parts must not be empty.\n`)
  return { role, parts: listed.map((part, at) => readPart(part, `${path}.parts[${at}]`)) }
}

function readPart(value: unknown, path: string): Part {
  const part = knownFields(value, path, PART_FIELDS)
  const held = DATA_FIELDS.filter((field) => part[field] !== undefined)
  if (held.length === 0)
    throw invalid(
      `* GenerateContentRequest.${path}.data: required oneof field 'data' must have one initialized field\n`,
    )
  if (held.length > 1)
    throw invalid(
      `Invalid value at '${path}' (oneof), oneof field 'data' is already set. Cannot set '${held[1]}'`,
    )
  if (part.text !== undefined && typeof part.text !== 'string')
    throw invalid(`Invalid value at '${path}.text' (TYPE_STRING), ${JSON.stringify(part.text)}`)
  if (part.inlineData !== undefined) checkInlineData(part.inlineData, `${path}.inline_data`)
  if (part.fileData !== undefined)
    knownFields(part.fileData, `${path}.file_data`, ['mimeType', 'fileUri', 'displayName'])
  if (part.functionCall !== undefined)
    checkFunction(part.functionCall, `${path}.function_call`, 'args', ['id', 'name', 'args'])
  if (part.functionResponse !== undefined) {
    const known = ['id', 'name', 'response', 'parts', 'willContinue', 'scheduling']
    checkFunction(part.functionResponse, `${path}.function_response`, 'response', known)
  }
  return part
}

function checkInlineData(value: unknown, path: string): void {
  const { mimeType, data } = knownFields(value, path, ['mimeType', 'data', 'displayName'])
  if (typeof mimeType !== 'string' || !/^\w+\/[\w.+-]+$/.test(mimeType))
    throw invalid(`Unsupported MIME type: ${mimeType ?? ''}`)
  if (typeof data !== 'string' || !BASE64.test(data))
    throw invalid(
      `Invalid value at '${path}.data' (TYPE_BYTES), Base64 decoding failed for ${JSON.stringify(data)}`,
    )
}

function checkFunction(value: unknown, path: string, payload: string, known: readonly string[]): void {
  const fields = knownFields(value, path, known)
  if (typeof fields.name !== 'string' || !FUNCTION_NAME.test(fields.name))
    throw invalid(
      `* GenerateContentRequest.${path}.name: Name cannot be empty or is not a valid function name.\n`,
    )
  const held = fields[payload]
  const isStruct = isObject(held) || (payload === 'args' && held === undefined)
  if (!isStruct)
    throw invalid(
      `Invalid value at '${path}.${payload}' (type.googleapis.com/google.protobuf.Struct), ${JSON.stringify(held)}`,
    )
}

function checkCalls(turns: readonly Turn[]): void {
  for (const [index, turn] of turns.entries()) {
    const calls = namesIn(turn, 'functionCall')
    const responses = namesIn(turn, 'functionResponse')
    const before = turns[index - 1]
    if (calls.length > 0 && (turn.role !== 'model' || before?.role !== 'user')) {
      throw invalid(
        'Please ensure that function call turn comes immediately after a user turn or after a function response turn.',
      )
    }
    const asked = before === undefined ? [] : namesIn(before, 'functionCall')
    if (responses.length > 0 && asked.length === 0)
      throw invalid('Please ensure that function response turn comes immediately after a function call turn.')
    if (asked.length !== responses.length)
      throw invalid(
        'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
      )
    if ([...asked].sort().join('\n') !== [...responses].sort().join('\n'))
      throw invalid(
        'Please ensure that the function response names match the function call names of the turn before.',
      )
  }
}

/** After the user's last message, the first call of every step must be signed. */
function checkSignatures(turns: readonly Turn[]): void {
  const spoken = turns.findLastIndex(
    ({ role, parts }) => role === 'user' && parts.some((part) => part.functionResponse === undefined),
  )
  for (const [index, turn] of turns.entries()) {
    if (index <= spoken) continue
    const first = turn.parts.find((part) => part.functionCall !== undefined)
    if (first === undefined) continue
    const signature = first.thoughtSignature
    if (signature === undefined) {
      const { name } = first.functionCall as { name: string }
      throw invalid(
        `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly. ` +
          `Additional data, function call \`default_api:${name}\`, position ${index + 1}.`,
      )
    }
    if (!isSignature(signature)) throw invalid('Thought signature is not valid.')
  }
}

function isSignature(value: unknown): boolean {
  if (value === SKIPPED_SIGNATURE) return true
  return (
    typeof value === 'string' && Buffer.from(value, 'base64').toString('utf8').startsWith(SIGNATURE_PREFIX)
  )
}

function namesIn({ parts }: Turn, field: 'functionCall' | 'functionResponse'): string[] {
  return parts.flatMap((part) => (isObject(part[field]) ? [String(part[field].name)] : []))
}
