/** OpenAI's images interface: generations as JSON, edits as a form. */
import { listFurtherFields } from '../../../../schemas/media/images.ts'
import type { FileRef, JobOf } from '../../../../schemas/media/job.ts'
import type { FormPart, MediaAdapter } from '../../media/adapter.ts'
import { isSuccess } from '../../media/answer.ts'
import { readImages } from '../../media/image-answer.ts'
import {
  filePart,
  formRequest,
  isLink,
  jsonRequest,
  omitUndefined,
  throwNotServed,
} from '../../media/request.ts'
import { openaiRefusal } from './refusal.ts'

type ImageJob = JobOf<'image' | 'image_edit'>

/**
 * Returns whether the job is an edit. A generation from reference images is one: only edits take images, and only as
 * bytes.
 */
const isEdit = (job: ImageJob): boolean =>
  job.work === 'image_edit' || job.images.length > 0 || job.mask !== null

const listFiles = (job: ImageJob): readonly FileRef[] =>
  job.mask === null ? job.images : [...job.images, job.mask]

/**
 * Returns the fields. `response_format` is never sent: newer models refuse it and always answer `b64_json`, others
 * answer a link by default. Both are supported.
 */
const makeBody = (job: ImageJob, model: string): Record<string, unknown> => ({
  ...listFurtherFields(job.extra),
  ...omitUndefined({ model, prompt: job.prompt, n: job.n, size: job.size }),
})

/** Forms hold only text. */
const textPart = ([name, value]: readonly [string, unknown]): FormPart => ({
  name,
  value: typeof value === 'string' ? value : JSON.stringify(value),
})

const makeForm = (job: ImageJob, model: string): readonly FormPart[] => [
  ...Object.entries(omitUndefined(makeBody(job, model))).map(textPart),
  ...job.images.map((file) => filePart('image[]', file)),
  ...(job.mask === null ? [] : [filePart('mask', job.mask)]),
]

const INVALID = /moderation|content_policy|safety|invalid/i
const chooseStatus = (code: string): number => (INVALID.test(code) ? 400 : 502)

export const openaiImages: MediaAdapter = {
  baseUrl: { end: '/v1', appended: '/images/generations' },
  works: ['image', 'image_edit'],
  inlines: false,
  takesIn: (job) => (job.work === 'image' || job.work === 'image_edit' ? listFiles(job).filter(isLink) : []),
  submit(channel, { job, upstreamModel }) {
    if (job.work !== 'image' && job.work !== 'image_edit') return throwNotServed(job)
    return isEdit(job)
      ? formRequest(channel, '/images/edits', makeForm(job, upstreamModel))
      : jsonRequest(channel, '/images/generations', makeBody(job, upstreamModel))
  },
  readSubmit: (answer) => (isSuccess(answer) ? readImages(answer, chooseStatus) : openaiRefusal(answer)),
  follow: null,
}
