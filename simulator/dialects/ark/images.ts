/** The ark-images dialect: `POST /api/v3/images/generations` in Ark's public shapes. */

import { z } from 'zod'
import { findNamedModel, requireBearer } from '../../access.ts'
import {
  type Dialect,
  jsonAnswer,
  type OpenedRequest,
  parseJsonObject,
  type ReceivedRequest,
  SimulatedFailure,
} from '../../dialect.ts'
import type { Directives, PixelSize } from '../../directives/grammar.ts'
import { Delivery } from '../../media/delivery.ts'
import { readAs } from '../../requests.ts'
import { makeTaskId } from '../../tasks/task-book.ts'
import { answerAfterWork, directivesInTexts } from '../../tasks/work.ts'
import { imageSize } from '../image-models.ts'
import { errorAnswer, NO_KEY } from './error.ts'

const NAME = 'ark-images'
const MODERATED = {
  message: 'The input text may contain sensitive information: simulated.',
  code: 'InputTextSensitiveContentDetected',
} as const
const MAX_IMAGES = 15
const MAX_REFERENCES = 14
const MIN_PIXELS = 960 * 960
const MAX_PIXELS = 4_096 * 4_096
/** The vendor bills width x height / 256 tokens for each image. */
const PIXELS_PER_TOKEN = 256
const MS_PER_SECOND = 1_000
const DEFAULT_SIZE = '2048x2048'
const NAMED_SIZES: Readonly<Record<string, string>> = {
  '1K': '1024x1024',
  '2K': '2048x2048',
  '4K': '4096x4096',
}

export const arkImages: Dialect = {
  name: NAME,
  endpoints: [{ method: 'POST', path: /^\/api\/v3\/images\/generations$/, open }],
  failure: errorAnswer,
}

const image = z
  .string()
  .regex(/^(https?:\/\/\S+|data:image\/[a-z]+;base64,[A-Za-z0-9+/]+={0,2})$/, 'no link and no picture')

const request = z.object({
  model: z.string().min(1),
  prompt: z.string().min(1),
  image: z.union([image, z.array(image).min(1).max(MAX_REFERENCES)]).optional(),
  size: z.string().default(DEFAULT_SIZE),
  seed: z
    .int()
    .min(-1)
    .max(2 ** 31 - 1)
    .optional(),
  response_format: z.enum(['url', 'b64_json']).default('url'),
  sequential_image_generation: z.enum(['auto', 'disabled']).default('disabled'),
  sequential_image_generation_options: z
    .object({ max_images: z.int().min(1).max(MAX_IMAGES).default(MAX_IMAGES) })
    .optional(),
  stream: z.literal(false).optional(),
  watermark: z.boolean().optional(),
})

type Asked = z.infer<typeof request>

function open(received: ReceivedRequest): OpenedRequest {
  requireBearer(received.headers, NO_KEY)
  const asked = readAs(request, parseJsonObject(received.body))
  const { model, directives } = findNamedModel(
    asked.model,
    (model) => `The model or endpoint ${model} does not exist or you do not have access to it.`,
  )
  const size = sizeAsked(model, asked)
  const { world } = received
  return {
    model: asked.model,
    directives: [directives, directivesInTexts([asked.prompt, asked.image])],
    answer: (merged) =>
      answerAfterWork(
        { world, dialect: NAME, model: asked.model, directives: merged, moderated: MODERATED },
        () => jsonAnswer(200, drawn(received, { ...asked, model }, size, merged)),
      ),
  }
}

function sizeAsked(model: string, { size: named, prompt }: Asked): PixelSize {
  const size = imageSize(model, { size: NAMED_SIZES[named] ?? named, prompt })
  const pixels = size.widthPixels * size.heightPixels
  if (pixels >= MIN_PIXELS && pixels <= MAX_PIXELS) return size
  const message = `The parameter \`size\` is not valid: image size must be at least ${MIN_PIXELS} pixels.`
  throw new SimulatedFailure(400, 'invalid_request', message, { param: 'size' })
}

function drawn(
  { world, origin }: ReceivedRequest,
  asked: Asked,
  usual: PixelSize,
  directives: Directives,
): object {
  const nowMs = Date.now()
  const options = { files: world.files, origin, id: makeTaskId(), directives }
  const delivery = new Delivery({ ...options, words: `${asked.model}\n${asked.prompt}` })
  const size = directives.size ?? usual
  const count = readCount(asked)
  const succeeded = Math.min(count, directives.partial ?? count)
  const text = `${size.widthPixels}x${size.heightPixels}`
  const pixels = size.widthPixels * size.heightPixels
  const tokens = Math.round((succeeded * pixels) / PIXELS_PER_TOKEN)
  const data = Array.from({ length: count }, (_, index) => {
    if (index >= succeeded) return { error: FAILED_IMAGE }
    if (asked.response_format === 'url') return { url: delivery.picture(index, size), size: text }
    return { b64_json: delivery.pictureBytes(index, size).toString('base64'), size: text }
  })
  return {
    model: asked.model,
    created: Math.floor(nowMs / MS_PER_SECOND),
    data,
    usage: { generated_images: succeeded, output_tokens: tokens, total_tokens: tokens },
  }
}

/** A group has as many as it may have; references count against the same limit. */
function readCount(asked: Asked): number {
  if (asked.sequential_image_generation === 'disabled') return 1
  const references = asked.image === undefined ? 0 : [asked.image].flat().length
  return Math.min(
    asked.sequential_image_generation_options?.max_images ?? MAX_IMAGES,
    MAX_IMAGES - references,
  )
}

const FAILED_IMAGE = {
  code: 'OutputImageSensitiveContentDetected',
  message: 'The output image may contain sensitive information: simulated.',
}
