/**
 * Checks that bytes are JSON (RFC 8259) and notes on a tape the places of its values. Written in AssemblyScript, because
 * there sixteen bytes of a string are read by one instruction; `src/core/json/scanner/tape.ts` says how it is used.
 *
 * A node of the tape is four words: its kind, where it begins and where it ends in the text, and the number of the node
 * behind all that it holds. A field is two nodes, its name and its value. Strings and names are noted without quotes.
 */
import { isPlainName, isSame, KNOWN_END, leaveObject, namesSoFar, OPEN_NAMES, startNames } from './json-names'

export { KNOWN, KNOWN_END, know } from './json-names'

/** The place for sets of words, and for what `find` found beside each. */
export const WORDS: usize = 1024
export const WORDS_END: usize = OPEN_NAMES
export const TAPE: usize = KNOWN_END
const MAX_NODES: i32 = 262144
const NODE_BYTES: usize = 16
const TAPE_END: usize = TAPE + <usize>MAX_NODES * NODE_BYTES
export const TEXT: usize = TAPE_END
/** Objects and arrays inside one another. */
export const MAX_LEVELS: u32 = 512

const OBJECT: i32 = 1
const ARRAY: i32 = 2
const STRING: i32 = 3
const NUMBER: i32 = 4
const TRUE: i32 = 5
const FALSE: i32 = 6
const NULL: i32 = 7
const NAME: i32 = 8
/** Added to the kind of a string or a name that holds a backslash. */
const ESCAPED: i32 = 16

/** No place to go on from: the text is no JSON, too much for the tape, or has a name that is not plain. */
const NOWHERE: usize = 0

const QUOTE: u32 = 0x22
const BACKSLASH: u32 = 0x5c
const COMMA: u32 = 0x2c
const COLON: u32 = 0x3a
const OPEN_BRACE: u32 = 0x7b
const CLOSE_BRACE: u32 = 0x7d
const OPEN_BRACKET: u32 = 0x5b
const CLOSE_BRACKET: u32 = 0x5d
const MINUS: u32 = 0x2d
const PLUS: u32 = 0x2b
const POINT: u32 = 0x2e
const ZERO: u32 = 0x30
const LETTER_E: u32 = 0x65
const LETTER_F: u32 = 0x66
const LETTER_N: u32 = 0x6e
const LETTER_T: u32 = 0x74
/** Words of four letters as little-endian numbers: `true`, `null`, and what follows the f of `false`. */
const WORD_TRUE: u32 = 0x65757274
const WORD_NULL: u32 = 0x6c6c756e
const WORD_ALSE: u32 = 0x65736c61

/** In place of a number of nodes: the text is refused. For any other fault: */
const REFUSED: i32 = 0
export const TOO_DEEP: i32 = -1
export const TOO_MANY: i32 = -2
let refusal: i32 = REFUSED

/** Marks of numbers: one may have more digits than a double, or an exponent; one has a point, or is minus zero. */
export const LONG_NUMBER: i32 = 1
const ODD_NUMBER: i32 = 2
/** A number of at most this many bytes has no more digits than a double. */
const PLAIN_BYTES: usize = 15
let numberMarks: i32 = 0

/** The place of the next node. */
let node: usize = TAPE
/** Values inside more than this many others are checked, and not noted. */
let depthNoted: u32 = 0

function byteAt(at: usize): u32 {
  return <u32>load<u8>(at)
}

function note(kind: i32, start: usize, end: usize): void {
  store<i32>(node, kind)
  store<i32>(node, <i32>(start - TEXT), 4)
  store<i32>(node, <i32>(end - TEXT), 8)
  node += NODE_BYTES
  store<i32>(node - NODE_BYTES, <i32>((node - TAPE) / NODE_BYTES), 12)
}

function spaceEnd(from: usize): usize {
  let at = from
  while (true) {
    const byte = byteAt(at)
    if (byte > 0x20 || (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)) return at
    at++
  }
}

/** All bits of each of the sixteen bytes at `at` that is a quote, a backslash, or no part of a string. */
function stopsIn(at: usize): v128 {
  const bytes = v128.load(at)
  const marks = v128.or(i8x16.eq(bytes, i8x16.splat(<i8>QUOTE)), i8x16.eq(bytes, i8x16.splat(<i8>BACKSLASH)))
  return v128.or(marks, i8x16.eq(i8x16.min_u(bytes, i8x16.splat(0x1f)), bytes))
}

/** The first byte from `from` on that is a quote, a backslash, or no part of a string. */
function plainEnd(from: usize): usize {
  const first = i8x16.bitmask(stopsIn(from))
  if (first !== 0) return from + <usize>ctz(first)
  let at = from + 16
  while (true) {
    const near = stopsIn(at)
    const far = stopsIn(at + 16)
    if (v128.any_true(v128.or(near, far)))
      return at + <usize>ctz(i8x16.bitmask(near) | (i8x16.bitmask(far) << 16))
    at += 32
  }
}

function isHex(byte: u32): bool {
  return byte - 0x30 < 10 || (byte | 0x20) - 0x61 < 6
}

/** The place behind the escape whose backslash precedes `at`. */
function escapeEnd(at: usize): usize {
  switch (byteAt(at)) {
    case 0x22: // "
    case 0x5c: // \
    case 0x2f: // /
    case 0x62: // b
    case 0x66: // f
    case 0x6e: // n
    case 0x72: // r
    case 0x74: // t
      return at + 1
    case 0x75: // u
      for (let i: usize = 1; i <= 4; i++) if (!isHex(byteAt(at + i))) return NOWHERE
      return at + 5
    default:
      return NOWHERE
  }
}

/**
 * Reads and notes the string or name whose opening quote precedes `from`; returns the place after its end. `first`
 * is where the hashes of the names before it in its object begin; 0 for what is not checked.
 */
function text(from: usize, depth: u32, kind: i32, first: usize): usize {
  let noted = kind
  let at = plainEnd(from)
  while (byteAt(at) === BACKSLASH) {
    noted = kind | ESCAPED
    const behind = escapeEnd(at + 1)
    if (behind === NOWHERE) return NOWHERE
    at = plainEnd(behind)
  }
  if (byteAt(at) !== QUOTE) return NOWHERE
  if (first !== 0 && (noted !== kind || !isPlainName(from, at - from, first))) return NOWHERE
  if (depth <= depthNoted) note(noted, from, at)
  return at + 1
}

function digitsEnd(from: usize): usize {
  let at = from
  while (byteAt(at) - ZERO < 10) at++
  return at === from ? NOWHERE : at
}

function numberEnd(from: usize): usize {
  const isNegative = byteAt(from) === MINUS
  let at = isNegative ? from + 1 : from
  if (byteAt(at) === ZERO) {
    at++
    if (isNegative) numberMarks |= ODD_NUMBER
  } else at = digitsEnd(at)
  if (at !== NOWHERE && byteAt(at) === POINT) {
    at = digitsEnd(at + 1)
    numberMarks |= ODD_NUMBER
  }
  if (at !== NOWHERE && (byteAt(at) | 0x20) === LETTER_E) {
    const sign = byteAt(at + 1)
    at = digitsEnd(sign === PLUS || sign === MINUS ? at + 2 : at + 1)
    numberMarks |= LONG_NUMBER
  }
  if (at > from + PLAIN_BYTES) numberMarks |= LONG_NUMBER
  return at
}

/** The marks of the numbers of the text that was scanned last; those of a refused text are not whole. */
export function marksOfNumbers(): i32 {
  return numberMarks
}

/** Reads and notes a number, or one of the three words. */
function scalar(at: usize, depth: u32): usize {
  const first = byteAt(at)
  let kind = NUMBER
  let end = NOWHERE
  if (first === LETTER_T) {
    kind = TRUE
    if (load<u32>(at) === WORD_TRUE) end = at + 4
  } else if (first === LETTER_F) {
    kind = FALSE
    if (load<u32>(at + 1) === WORD_ALSE) end = at + 5
  } else if (first === LETTER_N) {
    kind = NULL
    if (load<u32>(at) === WORD_NULL) end = at + 4
  } else end = numberEnd(at)
  if (end !== NOWHERE && depth <= depthNoted) note(kind, at, end)
  return end
}

/** Reads and notes the object or array that opens at `at`. */
function container(at: usize, depth: u32): usize {
  if (depth === MAX_LEVELS) {
    refusal = TOO_DEEP
    return NOWHERE
  }
  const isObject = byteAt(at) === OPEN_BRACE
  const closing = isObject ? CLOSE_BRACE : CLOSE_BRACKET
  const opened = node
  const isNoted = depth <= depthNoted
  if (isNoted) note(isObject ? OBJECT : ARRAY, at, at)
  let next = spaceEnd(at + 1)
  if (byteAt(next) !== closing) {
    next = items(next, depth + 1, isObject)
    if (next === NOWHERE || byteAt(next) !== closing) return NOWHERE
  }
  if (isNoted) {
    store<i32>(opened, <i32>(next + 1 - TEXT), 8)
    store<i32>(opened, <i32>((node - TAPE) / NODE_BYTES), 12)
  }
  return next + 1
}

/** Reads fields or elements, and the commas between them; gives the place of what closes them. */
function items(from: usize, depth: u32, isObject: bool): usize {
  const first = namesSoFar()
  let at = from
  while (true) {
    if (isObject) {
      if (byteAt(at) !== QUOTE) return NOWHERE
      at = text(at + 1, depth, NAME, first)
      if (at === NOWHERE) return NOWHERE
      at = spaceEnd(at)
      if (byteAt(at) !== COLON) return NOWHERE
      at = spaceEnd(at + 1)
    }
    at = value(at, depth)
    if (at === NOWHERE) return NOWHERE
    at = spaceEnd(at)
    if (byteAt(at) !== COMMA) {
      leaveObject(first)
      return at
    }
    at = spaceEnd(at + 1)
  }
}

function value(at: usize, depth: u32): usize {
  // A field takes two nodes.
  if (node + 2 * NODE_BYTES > TAPE_END) {
    refusal = TOO_MANY
    return NOWHERE
  }
  const first = byteAt(at)
  if (first === QUOTE) return text(at + 1, depth, STRING, 0)
  return first === OPEN_BRACE || first === OPEN_BRACKET ? container(at, depth) : scalar(at, depth)
}

/**
 * Scans the `length` bytes at `TEXT`, and notes values nested in at most `deepest` others. Behind the bytes the
 * memory must go on for another 64. With a set of known names, so is every name at any depth: it must be plain. Gives the
 * number of nodes; `TOO_DEEP`, `TOO_MANY`, or 0 for what is no JSON and where a name is not plain.
 */
export function scan(length: u32, deepest: u32, names: usize): i32 {
  const end = TEXT + <usize>length
  // JSON may contain no zero: it ends whatever is being read, so nothing else checks for the end.
  v128.store(end, i64x2.splat(0))
  node = TAPE
  depthNoted = deepest
  refusal = REFUSED
  numberMarks = 0
  startNames(names)
  const last = value(spaceEnd(TEXT), 0)
  return last !== NOWHERE && spaceEnd(last) === end ? <i32>((node - TAPE) / NODE_BYTES) : refusal
}

/**
 * A set of words: their number in eight bytes; each with its length in eight bytes and itself, filled up with zeros;
 * then four bytes for what `find` finds under each.
 */
export const SET_HEAD_BYTES: usize = 8
export const WORD_LENGTH_BYTES: usize = 8
export const MAX_WORD_BYTES: usize = 32
const WORD_BYTES: usize = WORD_LENGTH_BYTES + MAX_WORD_BYTES

/** Names of one object that are none of those looked for. */
const OTHERS: usize = 512
const MAX_OTHERS: i32 = 32

function nodeAt(number: i32): usize {
  return TAPE + <usize>number * NODE_BYTES
}

/** The place in the set of the string or name at a node, which must be of the given kind; or -1. */
function findPlace(at: usize, kind: i32, set: usize): i32 {
  if (load<i32>(at) !== kind) return -1
  const start = TEXT + <usize>load<i32>(at, 4)
  const length = TEXT + <usize>load<i32>(at, 8) - start
  const count = load<i32>(set)
  if (length === 0 || length > MAX_WORD_BYTES) return -1
  let word = set + SET_HEAD_BYTES
  for (let place = 0; place < count; place++) {
    if (load<u64>(word) === <u64>length && isSame(start, word + WORD_LENGTH_BYTES, length)) return place
    word += WORD_BYTES
  }
  return -1
}

/** The place in the set of the string at a node; -1 for another, for one that has escapes, and for what is no string. */
export function wordAt(number: i32, set: usize): i32 {
  return findPlace(nodeAt(number), STRING, set)
}

function isAmongOthers(name: usize, count: i32): bool {
  const start = load<i32>(name, 4)
  const length = load<i32>(name, 8) - start
  for (let i = 0; i < count; i++) {
    const other = <usize>load<u32>(OTHERS + ((<usize>i) << 2))
    const otherStart = load<i32>(other, 4)
    if (load<i32>(other, 8) - otherStart !== length) continue
    if (length === 0 || isSame(TEXT + <usize>start, TEXT + <usize>otherStart, <usize>length)) return true
  }
  return false
}

/**
 * Notes behind the set the nodes of the values that an object has under its names, 0 for none. False for what is no
 * object, and for one in which a name has escapes or occurs twice; likewise with too many names to compare.
 */
export function find(number: i32, set: usize): bool {
  const object = nodeAt(number)
  const count = load<i32>(set)
  const found = set + SET_HEAD_BYTES + <usize>count * WORD_BYTES
  for (let place: usize = 0; place < <usize>count; place++) store<i32>(found + (place << 2), 0)
  if (load<i32>(object) !== OBJECT) return false
  const end = nodeAt(load<i32>(object, 12))
  let otherCount = 0
  let name = object + NODE_BYTES
  while (name < end) {
    if (load<i32>(name) !== NAME) return false
    const value = load<i32>(name, 12)
    const place = findPlace(name, NAME, set)
    if (place >= 0) {
      const slot = found + ((<usize>place) << 2)
      if (load<i32>(slot) !== 0) return false
      store<i32>(slot, value)
    } else {
      if (otherCount === MAX_OTHERS || isAmongOthers(name, otherCount)) return false
      store<u32>(OTHERS + ((<usize>otherCount) << 2), <u32>name)
      otherCount++
    }
    name = nodeAt(load<i32>(nodeAt(value), 12))
  }
  return true
}
