/** Answers of the images form, `data: [{url} or {b64_json}]`, which several upstreams share. */
import { z } from 'zod'
import type { MediaAnswer, SubmitOutcome } from './adapter.ts'
import {
  loosePixels,
  looseText,
  looseWord,
  makeRefused,
  makeUnknown,
  readFields,
  readMessage,
  toFields,
} from './answer.ts'
import { decodeSource, makeProduced, toDelivered, toSource } from './files.ts'

const upstreamImage = z.looseObject({ url: looseText, b64_json: looseText, size: looseText })
const upstreamImages = z.looseObject({
  data: z.array(z.unknown()).catch([]).default([]),
  size: looseText,
  quality: looseWord,
  output_format: looseText,
})

const WIDTH_X_HEIGHT = /^(\d{1,6})x(\d{1,6})$/i

function readPixels(size: string | null): { width: number | null; height: number | null } {
  const [, width = null, height = null] = WIDTH_X_HEIGHT.exec(size ?? '') ?? []
  return { width: loosePixels.parse(width), height: loosePixels.parse(height) }
}

/** Returns the status that an error in a 200 would have had. */
type StatusOf = (code: string) => number

/**
 * Reads the images of a 2xx. Those that an upstream leaves out, or returns an error for, are neither delivered nor
 * charged; with none at all, or an error for the whole, the answer is a refusal.
 */
export function readImages(answer: MediaAnswer, toStatus: StatusOf): SubmitOutcome {
  const body = readFields(answer)
  if (body === null) return makeUnknown('The answer is no JSON object.')
  const { data, size, quality, output_format } = upstreamImages.parse(body)
  const images = data.flatMap((item) => {
    const image = upstreamImage.safeParse(item)
    if (!image.success) return []
    const { url, b64_json } = image.data
    const type = output_format === null ? null : `image/${output_format}`
    const source = b64_json === null ? toSource(url) : decodeSource(b64_json, type)
    return toDelivered('image', source, readPixels(image.data.size ?? size))
  })
  return images.length > 0 && !isError(body.error)
    ? makeProduced(images, { variant: quality })
    : withoutImages(body, data, toStatus)
}

const isError = (error: unknown): boolean =>
  typeof error === 'object' && error !== null ? Object.keys(error).length > 0 : Boolean(error)

function withoutImages(
  body: Readonly<Record<string, unknown>>,
  data: readonly unknown[],
  toStatus: StatusOf,
): SubmitOutcome {
  const error =
    toFields(body.error) ?? data.map((item) => toFields(toFields(item)?.error)).find(Boolean) ?? null
  const code = typeof error?.code === 'string' ? error.code : ''
  if (error !== null) return makeRefused(toStatus(code), readMessage(error, 'The upstream made no image.'))
  if (typeof body.error === 'string')
    return makeRefused(toStatus(''), readMessage(body, 'The upstream made no image.'))
  return makeUnknown('The answer holds no image.')
}
