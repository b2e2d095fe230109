/** What kind of picture some bytes are, and its size in pixels, from the first bytes of PNG, JPEG and WebP files. */
import { Buffer } from 'node:buffer'

export interface ImageFacts {
  readonly mediaType: 'image/png' | 'image/jpeg' | 'image/webp'
  readonly width: number
  readonly height: number
}

/** Null: none of the three, or too little of one. Never throws. */
export function imageFacts(bytes: Buffer): ImageFacts | null {
  const facts = png(bytes) ?? jpeg(bytes) ?? webp(bytes)
  return facts !== null && facts.width > 0 && facts.height > 0 ? facts : null
}

const ascii = (bytes: Buffer, from: number, to: number): string => bytes.toString('latin1', from, to)

const PNG_SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
/** Signature, length and name of the header chunk, then width and height in 4 bytes each. */
const PNG_SIZE_AT = 16

function png(bytes: Buffer): ImageFacts | null {
  if (bytes.length < PNG_SIZE_AT + 8 || !bytes.subarray(0, 8).equals(PNG_SIGNATURE)) return null
  if (ascii(bytes, 12, 16) !== 'IHDR') return null
  const width = bytes.readUInt32BE(PNG_SIZE_AT)
  return { mediaType: 'image/png', width, height: bytes.readUInt32BE(PNG_SIZE_AT + 4) }
}

/** Markers without a length: fill bytes, restarts, start and end of the image. */
const isBareMarker = (marker: number): boolean => marker === 0x01 || (marker >= 0xd0 && marker <= 0xd9)
/** The frame headers, C0 to CF, without the tables that stand among them. */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc

function jpeg(bytes: Buffer): ImageFacts | null {
  if (bytes.length < 4 || bytes[0] !== 0xff || bytes[1] !== 0xd8) return null
  let at = 2
  while (at + 9 <= bytes.length) {
    if (bytes[at] !== 0xff) return null
    const marker = bytes[at + 1] ?? 0
    if (marker === 0xff) at += 1
    else if (isBareMarker(marker)) at += 2
    else if (isFrame(marker)) {
      // Length, precision, height, width.
      return {
        mediaType: 'image/jpeg',
        width: bytes.readUInt16BE(at + 7),
        height: bytes.readUInt16BE(at + 5),
      }
    } else {
      const length = bytes.readUInt16BE(at + 2)
      if (length < 2) return null
      at += 2 + length
    }
  }
  return null
}

/** Sizes of lossy WebP have 14 bits, the other two bits scale it for display. */
const WEBP_LOSSY_MASK = 0x3fff

function webp(bytes: Buffer): ImageFacts | null {
  if (bytes.length < 30 || ascii(bytes, 0, 4) !== 'RIFF' || ascii(bytes, 8, 12) !== 'WEBP') return null
  const mediaType = 'image/webp'
  switch (ascii(bytes, 12, 16)) {
    case 'VP8 ':
      return {
        mediaType,
        width: bytes.readUInt16LE(26) & WEBP_LOSSY_MASK,
        height: bytes.readUInt16LE(28) & WEBP_LOSSY_MASK,
      }
    case 'VP8L': {
      const packed = bytes.readUInt32LE(21)
      return { mediaType, width: (packed & 0x3fff) + 1, height: ((packed >>> 14) & 0x3fff) + 1 }
    }
    case 'VP8X':
      return { mediaType, width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 }
    default:
      return null
  }
}
