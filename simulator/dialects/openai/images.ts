/** The openai-images dialect: `POST /v1/images/generations` and `/v1/images/edits` in OpenAI's public shapes. */

import { z } from 'zod'
import { findNamedModel, requireBearer } from '../../access.ts'
import {
  type Dialect,
  failuresAs,
  jsonAnswer,
  type OpenedRequest,
  parseJsonObject,
  type ReceivedRequest,
  SimulatedFailure,
} from '../../dialect.ts'
import type { Directives, PixelSize } from '../../directives/grammar.ts'
import { Delivery } from '../../media/delivery.ts'
import { type Form, readAs } from '../../requests.ts'
import { makeTaskId } from '../../tasks/task-book.ts'
import { answerAfterWork, directivesInTexts } from '../../tasks/work.ts'
import { errorBody } from '../chat-completions/error.ts'
import { imageCount, imageSize } from '../image-models.ts'

const NAME = 'openai-images'
const MODERATED = {
  message: 'Your request was rejected by the safety system: simulated.',
  code: 'moderation_blocked',
} as const
const NO_KEY = 'Incorrect API key provided: sim-*****key.'
const MAX_PROMPT_CHARACTERS = 32_000
const MAX_EDITED_IMAGES = 16
const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/webp']
const TOKENS_PER_IMAGE = 1_056

export const openaiImages: Dialect = {
  name: NAME,
  endpoints: [
    { method: 'POST', path: /^\/v1\/images\/generations$/, open: openGeneration },
    { method: 'POST', path: /^\/v1\/images\/edits$/, open: openEdit },
  ],
  failure: failuresAs(errorBody),
}

const common = {
  model: z.string().min(1),
  prompt: z.string().min(1).max(MAX_PROMPT_CHARACTERS),
  size: z.string().optional(),
  quality: z.enum(['standard', 'hd', 'low', 'medium', 'high', 'auto']).optional(),
  response_format: z.enum(['url', 'b64_json']).default('url'),
  background: z.enum(['transparent', 'opaque', 'auto']).optional(),
  output_format: z.literal('png').optional(),
  user: z.string().optional(),
  simulate: z.unknown().optional(),
}

const generation = z.strictObject({
  ...common,
  n: z.int().min(1).max(10).nullable().optional(),
  style: z.enum(['vivid', 'natural']).optional(),
  moderation: z.enum(['low', 'auto']).optional(),
  stream: z.literal(false).optional(),
})

const edit = z.strictObject({
  ...common,
  n: z.coerce.number().int().min(1).max(10).optional(),
  input_fidelity: z.enum(['low', 'high']).optional(),
  stream: z.literal('false').optional(),
})

type Asked = z.infer<typeof generation> | z.infer<typeof edit>

function openGeneration(request: ReceivedRequest): OpenedRequest {
  requireBearer(request.headers, NO_KEY)
  return opened(request, readAs(generation, parseJsonObject(request.body)))
}

function openEdit(request: ReceivedRequest): OpenedRequest {
  requireBearer(request.headers, NO_KEY)
  const form = request.form()
  const asked = readAs(edit, form.fields())
  checkFiles(form)
  return opened(request, asked)
}

function checkFiles(form: Form): void {
  const images = form.files('image', 'image[]')
  if (images.length === 0) throw refused("Missing required parameter: 'image'.", 'image')
  if (images.length > MAX_EDITED_IMAGES)
    throw refused(`Invalid 'image': at most ${MAX_EDITED_IMAGES}.`, 'image')
  const masks = form.files('mask')
  if (masks.length > 1) throw refused("Duplicate parameter: 'mask'.", 'mask')
  for (const { name, type, data } of [...images, ...masks]) {
    if (data.length === 0) throw refused(`The file of '${name}' is empty.`, name)
    if (!IMAGE_TYPES.includes(type ?? ''))
      throw refused(`Invalid file '${name}': unsupported mimetype ('${type}').`, name)
  }
}

function opened(request: ReceivedRequest, asked: Asked): OpenedRequest {
  const { model, directives } = findNamedModel(asked.model, (model) => `The model '${model}' does not exist.`)
  const size = imageSize(model, asked)
  const { world } = request
  return {
    model: asked.model,
    directives: [directives, directivesInTexts(asked.prompt), asked.simulate],
    answer: (merged) =>
      answerAfterWork(
        { world, dialect: NAME, model: asked.model, directives: merged, moderated: MODERATED },
        () => jsonAnswer(200, makeImages(request, { ...asked, model }, size, merged)),
      ),
  }
}

function makeImages(
  { world, origin }: ReceivedRequest,
  { model, prompt, n, response_format }: Asked,
  usual: PixelSize,
  directives: Directives,
): object {
  const nowMs = Date.now()
  const options = { files: world.files, origin, id: makeTaskId(), directives }
  const delivery = new Delivery({ ...options, words: `${model}\n${prompt}` })
  const size = directives.size ?? usual
  const count = directives.partial ?? imageCount(model, n ?? 1)
  const data = Array.from({ length: count }, (_, index) =>
    response_format === 'url'
      ? { url: delivery.picture(index, size) }
      : { b64_json: delivery.pictureBytes(index, size).toString('base64') },
  )
  const input = Math.ceil(Buffer.byteLength(prompt) / 4)
  const output = count * TOKENS_PER_IMAGE
  return {
    created: Math.floor(nowMs / 1_000),
    ...{ background: 'opaque', output_format: 'png', quality: 'medium' },
    size: `${size.widthPixels}x${size.heightPixels}`,
    data,
    usage: {
      ...{ input_tokens: input, output_tokens: output, total_tokens: input + output },
      input_tokens_details: { text_tokens: input, image_tokens: 0 },
    },
  }
}

function refused(message: string, param: string): SimulatedFailure {
  return new SimulatedFailure(400, 'invalid_request', message, { param })
}
