/**
 * Reads the field lines of a response's head (RFC 9112 5), as strictly as `src/upstream/response/field-scanner.ts` does, sixteen
 * bytes at a time. Lines that may frame the message, govern the connection or say how the body is to be read are reported by
 * the length of their names, and noted; what is not plainly right is left to that file, which has the words for it.
 */

/** Each noted line: four words, where its name begins, how long that is, and where its value begins and ends. */
export const NOTES: usize = 1024
const NOTE_BYTES: usize = 16
const MAX_NOTES: usize = 16
const NOTES_END: usize = NOTES + MAX_NOTES * NOTE_BYTES
export const TEXT: usize = NOTES_END

const COLON: u32 = 0x3a
const CR: u32 = 0x0d
const LF: u32 = 0x0a
/** As a little-endian number. */
const CRLF: u32 = 0x0a0d
const HTAB: i8 = 0x09
const LAST_CONTROL: i8 = 0x1f
const DELETE: i8 = 0x7f

/** What a name consists of, by the lower half of a character: a bit for each upper half that makes one of them. */
const TOKEN_BY_LOWER_HALF: v128 = i8x16(
  -0x18,
  -0x04,
  -0x08,
  -0x04,
  -0x04,
  -0x04,
  -0x04,
  -0x04,
  -0x08,
  -0x08,
  -0x0c,
  0x54,
  -0x30,
  0x54,
  -0x0c,
  0x70,
)
/** The bit of each upper half; none for what is not ASCII. */
const BIT_OF_UPPER_HALF: v128 = i8x16(0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, -0x80, 0, 0, 0, 0, 0, 0, 0, 0)

function byteAt(at: usize): u32 {
  return <u32>load<u8>(at)
}

/** The first byte from `from` on that no name holds. */
function nameEnd(from: usize): usize {
  let at = from
  while (true) {
    const bytes = v128.load(at)
    const lower = i8x16.swizzle(TOKEN_BY_LOWER_HALF, v128.and(bytes, i8x16.splat(0x0f)))
    const upper = i8x16.swizzle(BIT_OF_UPPER_HALF, i8x16.shr_u(bytes, 4))
    const others = i8x16.bitmask(i8x16.eq(v128.and(lower, upper), i8x16.splat(0)))
    if (others !== 0) return at + <usize>ctz(others)
    at += 16
  }
}

/** The first byte from `from` on that no value holds: a control character that is no tab. */
function valueEnd(from: usize): usize {
  let at = from
  while (true) {
    const bytes = v128.load(at)
    const controls = i8x16.eq(i8x16.min_u(bytes, i8x16.splat(LAST_CONTROL)), bytes)
    const inValues = v128.andnot(controls, i8x16.eq(bytes, i8x16.splat(HTAB)))
    const others = i8x16.bitmask(v128.or(inValues, i8x16.eq(bytes, i8x16.splat(DELETE))))
    if (others !== 0) return at + <usize>ctz(others)
    at += 16
  }
}

/**
 * The lengths of `Connection` and `Keep-Alive`, `Content-Type`, `Content-Length`, `Content-Encoding`,
 * `Transfer-Encoding`.
 */
function isNoted(nameLength: usize): bool {
  return nameLength === 10 || nameLength === 12 || nameLength === 14 || nameLength === 16 || nameLength === 17
}

let noted: usize = 0

function note(name: usize, nameLength: usize, valueStart: usize, valueEnd: usize): void {
  const at = NOTES + noted * NOTE_BYTES
  store<u32>(at, <u32>(name - TEXT))
  store<u32>(at, <u32>nameLength, 4)
  store<u32>(at, <u32>(valueStart - TEXT), 8)
  store<u32>(at, <u32>(valueEnd - TEXT), 12)
  noted++
}

/** Lines noted by the last scan. */
export function notes(): u32 {
  return <u32>noted
}

/**
 * Reads field lines up to the empty one, of the `length` bytes at `TEXT`; behind them the memory must go on for another
 * 16. Gives the place behind the empty line; 0 where that is not among the bytes, where a line is not plainly right, and
 * where there are more than `maxLines`, or more to note than has room.
 */
export function scan(length: u32, maxLines: u32): u32 {
  // No name or value may contain a zero: it ends whatever is being read, so nothing else checks for the end.
  v128.store(TEXT + <usize>length, i64x2.splat(0))
  let at = TEXT
  let lines: u32 = 0
  noted = 0
  while (byteAt(at) !== CR) {
    const colon = nameEnd(at)
    if (colon === at || byteAt(colon) !== COLON) return 0
    const end = valueEnd(colon + 1)
    if (<u32>load<u16>(end) !== CRLF || lines === maxLines) return 0
    lines++
    if (isNoted(colon - at)) {
      if (noted === MAX_NOTES) return 0
      note(at, colon - at, colon + 1, end)
    }
    at = end + 2
  }
  return byteAt(at + 1) === LF ? <u32>(at + 2 - TEXT) : 0
}
