/** Answers of the images form, `data: [{url} or {b64_json}]`, which several upstreams share. */
import { z } from 'zod'
import type { MediaAnswer, SubmitOutcome } from './adapter.ts'
import {
  fieldsIn,
  fieldsOf,
  loosePixels,
  looseText,
  looseWord,
  messageOf,
  refused,
  unknown,
} from './answer.ts'
import { deliveredOf, produced, sourceOf, sourceOfBase64 } from './files.ts'

const upstreamImage = z.looseObject({ url: looseText, b64_json: looseText, size: looseText })
const upstreamImages = z.looseObject({
  data: z.array(z.unknown()).catch([]).default([]),
  size: looseText,
  quality: looseWord,
  output_format: looseText,
})

const WIDTH_X_HEIGHT = /^(\d{1,6})x(\d{1,6})$/i

function pixelsOf(size: string | null): { width: number | null; height: number | null } {
  const [, width = null, height = null] = WIDTH_X_HEIGHT.exec(size ?? '') ?? []
  return { width: loosePixels.parse(width), height: loosePixels.parse(height) }
}

/** Returns the status that an error in a 200 would have had. */
type StatusOf = (code: string) => number

/**
 * Reads the images of a 2xx. Those that an upstream leaves out, or returns an error for, are neither delivered nor
 * charged; with none at all, or an error for the whole, the answer is a refusal.
 */
export function readImages(answer: MediaAnswer, statusOf: StatusOf): SubmitOutcome {
  const body = fieldsIn(answer)
  if (body === null) return unknown('The answer is no JSON object.')
  const { data, size, quality, output_format } = upstreamImages.parse(body)
  const images = data.flatMap((item) => {
    const image = upstreamImage.safeParse(item)
    if (!image.success) return []
    const { url, b64_json } = image.data
    const type = output_format === null ? null : `image/${output_format}`
    const source = b64_json === null ? sourceOf(url) : sourceOfBase64(b64_json, type)
    return deliveredOf('image', source, pixelsOf(image.data.size ?? size))
  })
  return images.length > 0 && !isError(body.error)
    ? produced(images, { variant: quality })
    : withoutImages(body, data, statusOf)
}

const isError = (error: unknown): boolean =>
  typeof error === 'object' && error !== null ? Object.keys(error).length > 0 : Boolean(error)

function withoutImages(
  body: Readonly<Record<string, unknown>>,
  data: readonly unknown[],
  statusOf: StatusOf,
): SubmitOutcome {
  const error =
    fieldsOf(body.error) ?? data.map((item) => fieldsOf(fieldsOf(item)?.error)).find(Boolean) ?? null
  const code = typeof error?.code === 'string' ? error.code : ''
  if (error !== null) return refused(statusOf(code), messageOf(error, 'The upstream made no image.'))
  if (typeof body.error === 'string')
    return refused(statusOf(''), messageOf(body, 'The upstream made no image.'))
  return unknown('The answer holds no image.')
}
