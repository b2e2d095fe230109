/** `/v1/images`: create, edit, get, list and cancel. See docs/api-rules.md, "Images". */
import type { FileRef, JobOf, StoredFileRef } from '../../../schemas/media/job.ts'
import { checkLink, FILES_PATH, isObjectKey } from '../../../src/core/media/file-link.ts'
import { chooseShape, withQualityApart } from '../../../src/core/media/image-shape.ts'
import type { Model } from '../../../src/core/routing/catalog.ts'
import type { Handler } from '../../../src/http/handler.ts'
import { invalidField } from '../../../src/protocols/request/client-json.ts'
import { isDataUri } from '../../../src/protocols/translate/data-uri.ts'
import type { StoredObject } from '../../../src/storage/store.ts'
import type { CallAccess } from '../../calls/authenticate.ts'
import { checkUnlessRepeated, insufficientBalance } from '../../calls/balance.ts'
import type { AnsweredKeys } from '../../calls/idempotency.ts'
import { jsonReply } from '../../calls/replies.ts'
import { toTaskFailure } from '../failed-task.ts'
import { throwUnreadable } from '../files/unreadable.ts'
import { ACCEPTED_IMAGES, type AcceptedFiles, type InputStore, storeDataUri } from '../inputs/store-input.ts'
import {
  type MediaCall,
  type MediaEndpoint,
  type MediaOrders,
  mediaCall,
  type OrderParts,
} from '../media-call.ts'
import { chooseVariant, priceJob } from '../priced-job.ts'
import { assertEndpoint, isServed, requireRoutes } from '../select-media.ts'
import { type MediaTasks, taskEndpoints } from '../task-endpoints.ts'
import { type ImageFiles, printImages, printImageTask, printSubmittedImages } from './answers.ts'
import { describeMeaning, type ImageInput, type ImageParams, readEdit, readGeneration } from './request.ts'

/** The time for all attempts of a request that waits for its images. See docs/api-rules.md, "Timeouts". */
const WAIT_MAX_MS = 280_000
const ENDPOINT_TYPES = ['images_generations'] as const

interface OwnLinks {
  readonly files: { head(key: string): Promise<StoredObject | null> }
  /** Signs the links: see `linkKey`. */
  readonly fileLinkKey: Uint8Array
}

export interface ImageStore extends InputStore, OwnLinks {
  readonly files: InputStore['files'] & OwnLinks['files'] & ImageFiles
}

type ImageJob = JobOf<'image' | 'image_edit'>

/** An edit without a mask is a generation from images. */
const chooseWork = ({ catalog, params, model }: MediaCall<ImageParams>): ImageJob['work'] =>
  params.isEdit && (params.mask !== null || isServed(catalog, model, 'image_edit')) ? 'image_edit' : 'image'

/** Returns prompt, size and quality as the model takes them, and the variant that is charged. */
function resolveWish({ entry }: Model, { prompt, size, extra }: ImageParams) {
  const asked = withQualityApart(entry.images, { prompt, size, extra })
  if (asked.prompt.trim() === '')
    throw invalidField('prompt', 'it says nothing in words: flags such as --hd are removed')
  const { quality = null } = asked.extra
  const variant = chooseVariant(entry, 'quality', quality as string | null)
  const chosen = variant === null ? asked : { ...asked, extra: { ...asked.extra, quality: variant } }
  const wish = chooseShape(entry.images, chosen)
  if (wish === null)
    throw invalidField('size', 'it must be a width and a height in pixels, such as 1024x768, or a ratio')
  return { wish: { ...wish, extra: { ...wish.extra } }, variant }
}

interface Placing extends InputStore, OwnLinks {
  readonly files: InputStore['files'] & OwnLinks['files']
}

/** Stores inline files, and files that links to this service name, for the job. Other links stay links. */
async function placeFiles(
  deps: Placing,
  { request, upload }: MediaCall<ImageParams>,
  given: readonly ImageInput[],
): Promise<FileRef[]> {
  const { requestId } = request
  const files: FileRef[] = []
  // The files of a form are numbered first.
  const sent = given.filter(({ source }) => typeof source !== 'string').length
  for (const [index, { field, source }] of given.entries()) {
    if (typeof source !== 'string') files.push(source)
    else if (isDataUri(source)) {
      const place = { upload, requestId, number: sent + index + 1, field, uri: source }
      files.push(await storeDataUri(deps, place, ACCEPTED_IMAGES))
    } else files.push((await findOwnFile(deps, source, ACCEPTED_IMAGES)) ?? { from: 'url', url: source })
  }
  return files
}

/** @throws Failure */
export async function orderImages(
  idempotency: AnsweredKeys,
  store: Placing,
  call: MediaCall<ImageParams>,
): Promise<OrderParts> {
  const { known, catalog, params, model } = call
  assertEndpoint(model, ENDPOINT_TYPES)
  const work = chooseWork(call)
  const routes = requireRoutes(catalog, model, work)
  const { images, mask, n, isAsync } = params
  const given = mask === null ? images : [...images, mask]
  const { wish, variant } = resolveWish(model, params)
  const job: ImageJob = { work, n, ...wish, images: [], mask: null }
  // The price depends on the number of files, not on where they are.
  const counted = priceJob(model, { ...job, images: images.map(() => ({ from: 'url', url: '' })) }, variant)
  await checkUnlessRepeated(idempotency, call, () => {
    if (counted.hold > known.view.balance) throw insufficientBalance(known, counted.hold)
  })
  const files = await placeFiles(store, call, given)
  return {
    ...counted,
    job: { ...job, images: files.slice(0, images.length), mask: files[images.length] ?? null },
    routes,
    until: isAsync ? 'accepted' : 'ended',
    // A result that the client does not get in time is not charged.
    deadlineMs: isAsync ? undefined : WAIT_MAX_MS,
  }
}

const imageCall = (
  orders: MediaOrders,
  store: ImageStore,
  read: MediaEndpoint<ImageParams>['read'],
): Handler =>
  mediaCall<ImageParams>(orders, {
    kind: 'image',
    protocol: 'images',
    read,
    model: ({ model }) => model,
    meaning: describeMeaning,
    isKeptAlive: ({ isAsync }) => !isAsync,
    // Answers with inline files are too large to keep.
    isReplayable: ({ isAsync, isInline }) => isAsync || !isInline,
    order: (call) => orderImages(orders.idempotency.records, store, call),
    async reply(task, { params: { isAsync, isInline } }) {
      if (isAsync) return jsonReply(printSubmittedImages(task))
      if (task.state !== 'succeeded') throw toTaskFailure(task)
      return jsonReply(await printImages(store.files, task, isInline))
    },
  })

export const makeImages = (orders: MediaOrders, store: ImageStore): Handler =>
  imageCall(orders, store, readGeneration)

export const editImages = (orders: MediaOrders, store: ImageStore): Handler =>
  imageCall(orders, store, (request, reading) => readEdit(request, store, reading))

export const imageTasks = (access: CallAccess, tasks: MediaTasks, files: ImageFiles) =>
  taskEndpoints(access, tasks, 'image', (task) => printImageTask(files, task))

/**
 * Returns the file that a link to this service names; null for any other link, and for an expired one. It is read from the store,
 * because the gateway's own address may be one from which nothing may be fetched. The link is enough to read the file.
 */
async function findOwnFile(
  { files, fileLinkKey }: OwnLinks,
  link: string,
  accepted: AcceptedFiles,
): Promise<StoredFileRef | null> {
  const { pathname, searchParams } = new URL(link)
  const key = pathname.slice(FILES_PATH.length)
  const isOurs = pathname.startsWith(FILES_PATH) && isObjectKey(key)
  if (!isOurs || checkLink(fileLinkKey, key, searchParams, Date.now()) !== 'valid') return null
  const found = await files.head(key).catch(throwUnreadable)
  if (found === null || !accepted.mediaTypes.includes(found.mediaType)) return null
  const { bytes, mediaType } = found
  return { from: 'store', key, media_type: mediaType, bytes, name: key.slice(key.lastIndexOf('/') + 1) }
}
