/** Reads the kind of a picture and its size in pixels from the first bytes of PNG, JPEG and WebP files. */
import type { Buffer } from 'node:buffer'
import { imageSize } from 'image-size'
import { sniffMediaType } from './type.ts'

const PICTURE_TYPES = ['image/png', 'image/jpeg', 'image/webp'] as const
/** A JPEG has its size behind what cameras and editors write about it. Bounds the work on hostile bytes. */
export const IMAGE_HEAD_BYTES = 128 * 1024
/** The header of a WebP file. The library reads sizes of zero from a shorter one. */
const MIN_BYTES = 30

export interface ImageFacts {
  readonly mediaType: (typeof PICTURE_TYPES)[number]
  readonly width: number
  readonly height: number
}

/** Returns null when the bytes are none of the three, or too few of one. Never throws. */
export function readImageFacts(bytes: Buffer): ImageFacts | null {
  const sniffed = sniffMediaType(bytes)
  const mediaType = PICTURE_TYPES.find((type) => type === sniffed)
  if (mediaType === undefined || bytes.length < MIN_BYTES) return null
  try {
    const { width, height } = imageSize(bytes.subarray(0, IMAGE_HEAD_BYTES))
    return width > 0 && height > 0 ? { mediaType, width, height } : null
  } catch {
    return null
  }
}
