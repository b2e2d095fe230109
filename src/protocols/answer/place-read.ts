/** Reads the facts of an answer that is there whole, by the tape; what the tape does not take, by the scanner of streams. */
import type { Buffer } from 'node:buffer'
import { ARRAY, MAX_JSON_LEVELS, OBJECT, STRING, scanJson, type Tape } from '../../core/json/scanner/tape.ts'
import { countCharacters } from '../../core/pricing/text-tokens.ts'
import { PlaceScanner } from './place-scan.ts'
import { AnswerFacts, findPlace, type Place, readsText } from './places.ts'

/** Returns the facts of one object. Malformed JSON gives fewer facts, never an error. */
export function readFacts(bytes: Buffer, root: Place): AnswerFacts {
  return readWhole(bytes, root) ?? readInPieces(bytes, root)
}

/** Returns the facts of bytes that are one whole object; null for what the tape does not take. */
export const readWhole = (bytes: Buffer, root: Place): AnswerFacts | null =>
  scanJson(bytes, MAX_JSON_LEVELS, null, (tape) => factsOn(tape, bytes, root))

function factsOn(tape: Tape, bytes: Buffer, root: Place): AnswerFacts | null {
  if (!tape.isObjectText) return null
  const facts = new AnswerFacts()
  readObject(tape, 0, root, bytes, facts)
  return facts
}

function readInPieces(bytes: Buffer, root: Place): AnswerFacts {
  let whole: AnswerFacts | null = null
  const scanner = new PlaceScanner(root, (facts) => {
    whole ??= facts
  })
  scanner.push(bytes)
  return whole ?? scanner.facts
}

function readValue(tape: Tape, node: number, place: Place, bytes: Buffer, facts: AnswerFacts): void {
  const kind = tape.readKind(node)
  const { is } = place
  if (kind === STRING) {
    if (is !== undefined) readString(tape, node, place, bytes, facts)
  } else if (kind === OBJECT) {
    if (place.fields !== undefined) readObject(tape, node, place, bytes, facts)
    else if (is === 'args') facts.characters += charactersAt(tape, node, bytes)
    else if (is === 'json' || is === 'object') place.note!(facts, tape.readRawText(node))
  } else if (kind === ARRAY) {
    if (place.each !== undefined) readList(tape, node, place, place.each, bytes, facts)
    else if (is === 'args') facts.characters += charactersAt(tape, node, bytes)
    else if (is === 'json') place.note!(facts, tape.readRawText(node))
  } else if (is !== undefined && !tape.isMissing(node)) facts.takeWord(place, tape.readRawText(node))
}

function readObject(tape: Tape, object: number, place: Place, bytes: Buffer, facts: AnswerFacts): void {
  const end = tape.nodeAfter(object)
  facts.enter(place)
  if (end > object + 1) facts.fill(place, false)
  for (let name = object + 1; name < end; name = tape.nodeAfter(name + 1)) {
    const inside = findPlace(place, bytes, tape.readStart(name), tape.readEnd(name))
    if (inside !== undefined) readValue(tape, name + 1, inside, bytes, facts)
  }
  facts.leave(place)
}

function readList(
  tape: Tape,
  list: number,
  place: Place,
  each: Place,
  bytes: Buffer,
  facts: AnswerFacts,
): void {
  const end = tape.nodeAfter(list)
  facts.enter(place)
  if (end > list + 1) facts.fill(place, true)
  for (let item = list + 1; item < end; item = tape.nodeAfter(item)) readValue(tape, item, each, bytes, facts)
  facts.leave(place)
}

function readString(tape: Tape, node: number, place: Place, bytes: Buffer, facts: AnswerFacts): void {
  const start = tape.readStart(node)
  const end = tape.readEnd(node)
  if (place.is === 'said') {
    facts.characters += countCharacters(bytes, start, end)
    facts.spoken++
    facts.spokenStart = start
    facts.spokenEnd = end
  } else if (place.is === 'json') place.note!(facts, tape.readRawText(node))
  else if (readsText(place)) facts.takeText(place, tape.readWritten(node))
  else facts.takeString(place, start === end)
}

/** Returns the characters of a value as JSON without white space. */
function charactersAt(tape: Tape, node: number, bytes: Buffer): number {
  if (tape.isText(node)) return 2 + countCharacters(bytes, tape.readStart(node), tape.readEnd(node))
  const isObject = tape.isObject(node)
  if (!isObject && !tape.isList(node)) return tape.readEnd(node) - tape.readStart(node)
  const end = tape.nodeAfter(node)
  // Brackets; a colon or nothing for each item, and a comma behind all but the last.
  let characters = end > node + 1 ? 1 : 2
  for (let item = node + 1; item < end; item = tape.nodeAfter(item)) {
    if (isObject) {
      characters += 3 + countCharacters(bytes, tape.readStart(item), tape.readEnd(item))
      item++
    }
    characters += 1 + charactersAt(tape, item, bytes)
  }
  return characters
}

/** A value that no fact depends on: `bytes[start, end)`, with its quotes. */
export interface Unread {
  readonly start: number
  readonly end: number
  /** An object or a list in its place may be read. */
  readonly isScalar: boolean
}

/** Returns the values in one object that no fact depends on; not those inside one of them. */
export const findUnread = (bytes: Buffer, root: Place): readonly Unread[] =>
  scanJson(bytes, MAX_JSON_LEVELS, null, (tape) => {
    const found: Unread[] = []
    addUnread(tape, 0, root, bytes, found)
    return found
  }) ?? []

function addUnread(tape: Tape, node: number, place: Place | undefined, bytes: Buffer, found: Unread[]): void {
  const kind = tape.readKind(node)
  const inside = kind === OBJECT ? place?.fields : kind === ARRAY ? place?.each : undefined
  if (place === undefined || inside === undefined) {
    const isScalar = place?.fields !== undefined || place?.each !== undefined
    if (place?.is === undefined) found.push({ ...tape.readPlace(node), isScalar })
    return
  }
  const end = tape.nodeAfter(node)
  for (let item = node + 1; item < end; item = tape.nodeAfter(item)) {
    const below =
      kind === ARRAY ? place.each : findPlace(place, bytes, tape.readStart(item), tape.readEnd(item++))
    addUnread(tape, item, below, bytes, found)
  }
}
