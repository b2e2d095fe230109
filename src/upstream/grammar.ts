/** Bytes and byte classes of RFC 9110 and RFC 9112. */

export const HTAB = 0x09
export const LF = 0x0a
export const CR = 0x0d
export const SP = 0x20
export const QUOTE = 0x22
export const COLON = 0x3a
export const SEMICOLON = 0x3b
export const EQUALS = 0x3d
export const BACKSLASH = 0x5c
export const DIGIT_0 = 0x30

const BYTE_VALUES = 256

function makeByteClass(belongs: (byte: number) => boolean): Uint8Array {
  const table = new Uint8Array(BYTE_VALUES)
  for (let byte = 0; byte < BYTE_VALUES; byte++) table[byte] = belongs(byte) ? 1 : 0
  return table
}

const isAlphanumeric = (byte: number): boolean => /[0-9A-Za-z]/.test(String.fromCharCode(byte))

/** token: field names, methods, names of chunk extensions (RFC 9110 5.6.2). */
export const TOKEN = makeByteClass(
  (byte) => isAlphanumeric(byte) || (byte !== 0 && "!#$%&'*+-.^_`|~".includes(String.fromCharCode(byte))),
)

/** Bytes of a field value or a reason phrase: tab, space, visible and obs-text; no other control. */
export const FIELD_TEXT = makeByteClass((byte) => byte === HTAB || (byte >= SP && byte !== 0x7f))

/** Bytes of a request target: visible ASCII except the fragment mark. */
export const TARGET = makeByteClass((byte) => byte > SP && byte < 0x7f && byte !== 0x23)

const NOT_HEX = 0xff

/** Value of a hexadecimal digit, 255 for any other byte. */
export const HEX_VALUE = (() => {
  const table = new Uint8Array(BYTE_VALUES).fill(NOT_HEX)
  for (let digit = 0; digit < 16; digit++) {
    const text = digit.toString(16)
    table[text.charCodeAt(0)] = digit
    table[text.toUpperCase().charCodeAt(0)] = digit
  }
  return table
})()

/** Returns true when every character is a byte of the class; characters above 255 are of none. */
export function hasOnly(text: string, table: Uint8Array): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code >= BYTE_VALUES || table[code] === 0) return false
  }
  return true
}
