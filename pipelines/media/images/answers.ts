/** Prints images and image tasks for their account. See docs/api-rules.md, "Files and link lifetimes". */
import { Buffer } from 'node:buffer'
import type { z } from 'zod'
import type { imageAnswer, imageSubmitted, imageTask } from '../../../schemas/media/images.ts'
import type { ResultFile } from '../../../schemas/media/job.ts'
import { TASK_RULES } from '../../../schemas/tasks/task.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import type { FileLinks, FileReader } from '../../../src/storage/store.ts'
import { readEnding } from '../../tasks/end/settlement.ts'
import { isThere, KEEPING } from '../../tasks/store/result-files.ts'
import { filesRemoved } from '../failed-task.ts'
import { throwUnreadable } from '../files/unreadable.ts'
import { toEpochSeconds } from '../task-records.ts'

type ImageAnswer = z.infer<typeof imageAnswer>
type ImageTask = z.infer<typeof imageTask>
export interface ImageFiles extends FileLinks, FileReader {}

const BYTES_PER_MIB = 1024 * 1024
/** The limit of all files of one answer together, before base64. */
const INLINE_MAX_BYTES = 96 * BYTES_PER_MIB

/** Lists the images that their owner has not deleted. */
const listImages = ({ result }: Task): readonly ResultFile[] =>
  result?.files.filter((file) => file.role === 'image' && isThere(file, Date.now())) ?? []

/** Returns when the files are removed, and their links end. */
const computeExpiry = ({ kind, endedAt, submittedAt }: Task): number =>
  (endedAt ?? submittedAt) + (KEEPING[kind].linkMs ?? 0)

async function linkImage(files: ImageFiles, task: Task, { key, upstream_url }: ResultFile) {
  return { url: key === null ? (upstream_url ?? '') : await files.makeLink(key, computeExpiry(task)) }
}

const printHead = ({ id, model, submittedAt }: Task) => ({
  id,
  object: 'image.task' as const,
  model,
  created_at: toEpochSeconds(submittedAt),
})

/** Prints the answer to a submit: always `queued`, whatever has happened to the task since. */
export function printSubmittedImages(task: Task): z.infer<typeof imageSubmitted> {
  const { id, object, model, created_at } = printHead(task)
  return { id, object, model, status: 'queued', created_at }
}

export async function printImageTask(files: ImageFiles, task: Task): Promise<ImageTask> {
  const { id, object, model, created_at } = printHead(task)
  const { code, message } = readEnding(task)
  const status = TASK_RULES[task.kind].outward[task.state] as ImageTask['status']
  const printed = { id, object, model, status, created_at }
  if (code !== null) return { ...printed, error: { code, message: message ?? '' } }
  if (task.state !== 'succeeded') return printed
  const images = listImages(task)
  // Also if none of them exists any longer.
  const isOurs = images.length === 0 || images.some(({ key }) => key !== null)
  return {
    ...printed,
    data: await Promise.all(images.map((image) => linkImage(files, task, image))),
    expires_at: isOurs ? toEpochSeconds(computeExpiry(task)) : null,
  }
}

/** Returns the file in base64 if it is stored here and fits into the rest of the answer. */
async function readInline(files: ImageFiles, { key }: ResultFile, maxBytes: number): Promise<Buffer | null> {
  if (key === null) return null
  const body = await files.get(key).catch(throwUnreadable)
  if (body === null) throw filesRemoved('images')
  if (body.bytes > maxBytes) {
    body.stream.destroy()
    return null
  }
  return Buffer.concat(await body.stream.toArray().catch(throwUnreadable))
}

/**
 * Prints the images of a successful task, inline or as links. An image that cannot be inline is a link.
 */
export async function printImages(files: ImageFiles, task: Task, isInline: boolean): Promise<ImageAnswer> {
  const data: ImageAnswer['data'] = []
  let left = INLINE_MAX_BYTES
  const images = listImages(task)
  if (images.length === 0) throw filesRemoved('images')
  for (const image of images) {
    const bytes = isInline ? await readInline(files, image, left) : null
    left -= bytes?.length ?? 0
    data.push(bytes === null ? await linkImage(files, task, image) : { b64_json: bytes.toString('base64') })
  }
  return { created: toEpochSeconds(task.submittedAt), model: task.model, data }
}
