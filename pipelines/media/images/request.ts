/** Reads a request for images, as JSON or as a form. See docs/api-rules.md, "Images". */
import { createHash } from 'node:crypto'
import {
  type ImageEditRequest,
  type ImageRequest,
  imageEditFields,
  imageEditRequest,
  imageRequest,
  imageSource,
  listFurtherFields,
  REFERENCE_IMAGES_MAX,
} from '../../../schemas/media/images.ts'
import type { StoredFileRef } from '../../../schemas/media/job.ts'
import type { GatewayRequest } from '../../../src/http/handler.ts'
import { invalidField, readClientJson, readJsonBody } from '../../../src/protocols/request/client-json.ts'
import { isDataUri } from '../../../src/protocols/translate/data-uri.ts'
import { type ReadForm, readForm } from '../inputs/read-form.ts'
import { ACCEPTED_IMAGES, type InputStore } from '../inputs/store-input.ts'
import type { Reading } from '../media-call.ts'

/** A link, a data URI, or a file that came with the form. */
export interface ImageInput {
  /** The field, as a refusal names it. */
  readonly field: string
  readonly source: string | StoredFileRef
  /** Only for a file that came with the form. */
  readonly sha256?: Buffer
}

export interface ImageParams {
  readonly model: string
  readonly prompt: string
  readonly n: number
  readonly size: string | null
  readonly isAsync: boolean
  readonly isInline: boolean
  readonly isEdit: boolean
  readonly callback_url: string | null
  readonly images: readonly ImageInput[]
  readonly mask: ImageInput | null
  readonly extra: Readonly<Record<string, unknown>>
}

type Fields = Pick<
  ImageRequest,
  'model' | 'prompt' | 'n' | 'size' | 'async' | 'response_format' | 'callback_url'
>

/** @throws Failure `invalid_request` for images in base64 that are polled for: a task has links */
function readCommonFields(fields: Fields) {
  const isAsync = fields.async === true
  const isInline = fields.response_format === 'b64_json'
  if (isAsync && isInline)
    throw invalidField(
      'response_format',
      'b64_json is not available with async: the task has links to its images',
    )
  return {
    model: fields.model,
    prompt: fields.prompt,
    n: fields.n ?? 1,
    size: fields.size ?? null,
    isAsync,
    callback_url: fields.callback_url ?? null,
    isInline,
    extra: listFurtherFields(fields),
  }
}

function listImageInputs(image: ImageRequest['image'] | ImageEditRequest['image']): readonly ImageInput[] {
  if (image == null) return []
  if (typeof image === 'string') return [{ field: 'image', source: image }]
  return image.map((source, index) => ({ field: `image[${index}]`, source }))
}

/** @throws Failure `invalid_request` */
export function readGeneration({ body }: Pick<GatewayRequest, 'body'>): ImageParams {
  const params = readJsonBody(imageRequest, body)
  return { ...readCommonFields(params), isEdit: false, images: listImageInputs(params.image), mask: null }
}

/** @throws Failure `invalid_request`, `request_too_large` */
export async function readEdit(
  request: GatewayRequest,
  inbox: InputStore,
  { upload, checkModel }: Reading,
): Promise<ImageParams> {
  const form = await readForm(request, inbox, {
    accepted: ACCEPTED_IMAGES,
    files: { image: REFERENCE_IMAGES_MAX, 'image[]': REFERENCE_IMAGES_MAX, mask: 1 },
    upload,
    check(fields) {
      const { model } = readClientJson(earlyFields, readTexts(fields))
      if (model !== undefined) checkModel(model)
    },
  })
  if (form !== null) return readEditForm(form)
  const params = readJsonBody(imageEditRequest, request.body)
  const mask = params.mask == null ? null : { field: 'mask', source: params.mask }
  return { ...readCommonFields(params), isEdit: true, images: listImageInputs(params.image), mask }
}

const IMAGE_FIELDS = ['image', 'image[]']
const FILE_FIELDS = [...IMAGE_FIELDS, 'mask']
const NUMBERS = ['n', 'output_compression', 'seed', 'guidance_scale']
const NUMBER = /^-?\d{1,10}(\.\d{1,6})?$/
const BOOLEANS = ['async', 'stream', 'watermark']
const TRUTHS: Readonly<Record<string, boolean>> = { true: true, false: false }

/** Before a file of the form, later fields are not missing yet. */
const earlyFields = imageEditFields.partial()

/** Reads the type of a field: forms have only text. */
function readTypedValue([name, value]: readonly [string, string]): readonly [string, unknown] {
  if (NUMBERS.includes(name) && NUMBER.test(value)) return [name, Number(value)]
  if (BOOLEANS.includes(name) && Object.hasOwn(TRUTHS, value)) return [name, TRUTHS[value]]
  return [name, value]
}

const readTexts = (fields: ReadForm['fields']): Record<string, unknown> =>
  Object.fromEntries(
    fields.filter(([name, value]) => !FILE_FIELDS.includes(name) && value !== '').map(readTypedValue),
  )

/** Returns the first field that is repeated but may not be. */
function findRepeated(fields: ReadForm['fields']): string | undefined {
  const names = fields.map(([name]) => name).filter((name) => !FILE_FIELDS.includes(name))
  const seen = new Set<string>()
  return names.find((name) => seen.size === seen.add(name).size)
}

function readEditForm({ fields, files }: ReadForm): ImageParams {
  const repeated = findRepeated(fields)
  if (repeated !== undefined) throw invalidField(repeated, 'the form has it more than once')
  const params = readClientJson(imageEditFields, readTexts(fields))
  const images = readImageInputs({ fields, files }, IMAGE_FIELDS)
  const [mask = null, ...moreMasks] = readImageInputs({ fields, files }, ['mask'])
  if (images.length === 0) throw invalidField('image', 'a file, a link or a data URI is required')
  if (images.length > REFERENCE_IMAGES_MAX)
    throw invalidField('image', `at most ${REFERENCE_IMAGES_MAX} images are taken`)
  if (moreMasks.length > 0) throw invalidField('mask', 'at most one mask is taken')
  return { ...readCommonFields(params), isEdit: true, images, mask }
}

/** Returns the files of these fields, and the links in their texts. */
function readImageInputs({ fields, files }: Pick<ReadForm, 'fields' | 'files'>, names: readonly string[]) {
  const sent = files
    .filter(({ field }) => names.includes(field))
    .map(({ field, file, sha256 }): ImageInput => ({ field, source: file, sha256 }))
  const named = fields
    .filter(([field, value]) => names.includes(field) && value !== '')
    .map(([field, value]): ImageInput => {
      const source = imageSource.safeParse(value)
      if (!source.success) throw invalidField(field, source.error.issues[0]!.message)
      return { field, source: source.data }
    })
  return [...sent, ...named]
}

/** Returns what distinguishes two requests, with files by content: the fields of a form may have any order. */
export function describeMeaning({ images, mask, ...fields }: ImageParams): object {
  const describeContent = ({ source, sha256 }: ImageInput): string => {
    if (typeof source !== 'string') return `file ${sha256!.toString('base64')}`
    return isDataUri(source) ? createHash('sha256').update(source).digest('base64') : source
  }
  return { ...fields, images: images.map(describeContent), mask: mask && describeContent(mask) }
}
