/**
 * `POST /v1/images/generations` and `POST /v1/images/edits` as clients write them, images and image tasks as they read
 * them. See docs/api-rules.md, "Images".
 */
import { z } from 'zod'
import { toTaskListSchema } from '../tasks/list.ts'
import { boundText, callerLink, mediaFields, modelId, normalizeLink } from './fields.ts'

export const IMAGES_MAX = 10
export const REFERENCE_IMAGES_MAX = 16
const IMAGE_PROMPT_MAX_CHARS = 32_000
const SIZE_MAX_CHARS = 32
const WORD_MAX_CHARS = 64
const END_USER_MAX_CHARS = 512

const INLINE = /^data:image\/[a-z0-9.+-]+;base64,/i

export const imageSource = z
  .string()
  .refine((text) => INLINE.test(text) || callerLink.safeParse(text).success, {
    error: 'it must be an http or https link of at most 2048 characters, or a data URI with base64',
  })
  .overwrite((text) => (INLINE.test(text) ? text : normalizeLink(text)))
  .describe(
    'A public http or https link, one that was handed out here, or a data URI: `data:image/png;base64,…`.',
  )

const severalSources = z
  .array(imageSource)
  .min(1)
  .max(REFERENCE_IMAGES_MAX, `at most ${REFERENCE_IMAGES_MAX} images are taken`)
const imageSources = z.union([imageSource, severalSources])

const word = z.string().min(1).max(WORD_MAX_CHARS)

/** Wishes that reach an upstream as they are. Beside these and the fields below, no field of a request does. */
const furtherFields = {
  quality: word
    .nullish()
    .describe('Such as low, high or hd; for a model with prices by quality, one of those.'),
  style: word.nullish(),
  background: word.nullish(),
  output_format: word.nullish(),
  output_compression: z.int().min(0).max(100).nullish(),
  moderation: word.nullish(),
  input_fidelity: word.nullish(),
  negative_prompt: boundText(IMAGE_PROMPT_MAX_CHARS, 0).nullish(),
  seed: z.int().nullish(),
  guidance_scale: z.number().nullish(),
  watermark: z.boolean().nullish(),
  user: z.string().max(END_USER_MAX_CHARS).nullish(),
}

const fields = {
  model: modelId,
  ...mediaFields,
  prompt: boundText(IMAGE_PROMPT_MAX_CHARS),
  n: z
    .int()
    .min(1)
    .max(IMAGES_MAX)
    .nullish()
    .describe(`1 to ${IMAGES_MAX}; 1 where it is left out. Models in the manner of a grid always make four.`),
  size: z
    .string()
    .min(1)
    .max(SIZE_MAX_CHARS)
    .nullish()
    .describe('Width and height in pixels, such as 1024x768. Each model has its own sizes.'),
  async: z.boolean().nullish().describe('True answers with a task to poll, at once.'),
  response_format: z
    .enum(['url', 'b64_json'])
    .nullish()
    .describe('url where it is left out. A task has links whatever this says.'),
  ...furtherFields,
}

const generationFields = {
  ...fields,
  image: imageSources.nullish().describe(`What to begin with: one image, or up to ${REFERENCE_IMAGES_MAX}.`),
}
const editFields = {
  ...fields,
  image: imageSources.describe(`What is edited: one image, or up to ${REFERENCE_IMAGES_MAX}.`),
  mask: imageSource.nullish().describe('Where it is transparent the image is to be changed.'),
}

export const imageRequest = z.looseObject(generationFields)
export type ImageRequest = z.infer<typeof imageRequest>

export const imageEditRequest = z.looseObject(editFields)
export type ImageEditRequest = z.infer<typeof imageEditRequest>

/** The text fields of a form; its files are separate. */
export const imageEditFields = z.looseObject(fields)

const file = z.string().meta({ format: 'binary' })

/** As the reference shows the form. */
export const imageEditForm = z.object({
  ...fields,
  'image[]': z
    .array(file)
    .min(1)
    .max(REFERENCE_IMAGES_MAX)
    .describe(
      `1 to ${REFERENCE_IMAGES_MAX} files, each a part of its own: PNG, JPEG, WebP or GIF. \`image\` does as well.`,
    ),
  mask: file.optional().describe('Where it is transparent the image is to be changed.'),
})

/** Returns the further wishes among the fields of a parsed request. */
export const listFurtherFields = (body: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(
    Object.keys(furtherFields).flatMap((name) =>
      body[name] === null || body[name] === undefined ? [] : [[name, body[name]]],
    ),
  )

const linkedImage = z.object({
  url: z.string().describe('The image. A link of ours opens for 24 hours after it was made.'),
})
const inlineImage = z.object({ b64_json: z.string().describe('The file of the image in base64.') })

/** As the answer to a request that waits for its images. */
export const imageAnswer = z.object({
  created: z.int().describe('Epoch seconds.'),
  model: z.string(),
  data: z
    .array(z.union([linkedImage, inlineImage]))
    .describe('As many as were made: what is charged follows it.'),
})

const imageTaskStatus = z.enum(['queued', 'running', 'succeeded', 'failed', 'expired', 'cancelled'])

export const imageTask = z.object({
  id: z.string(),
  object: z.literal('image.task'),
  model: z.string(),
  status: imageTaskStatus,
  created_at: z.int().describe('Epoch seconds.'),
  data: z.array(linkedImage).optional().describe('On success.'),
  expires_at: z
    .int()
    .nullable()
    .optional()
    .describe(
      'On success: when the links stop working, epoch seconds. Null where the images could not be copied and the ' +
        "links are the upstream's own.",
    ),
  error: z.object({ code: z.string(), message: z.string() }).optional().describe('Why there are no images.'),
})

export const imageSubmitted = imageTask.pick({
  id: true,
  object: true,
  model: true,
  status: true,
  created_at: true,
})

/** The images, or with `async` the task that makes them. */
export const imagesOrTask = z.union([imageAnswer, imageSubmitted])

export const imageTaskList = toTaskListSchema(imageTask)
