/** Ark's images interface: like OpenAI's, with reference images in the same request. */
import { listFurtherFields } from '../../../../schemas/media/images.ts'
import type { JobOf } from '../../../../schemas/media/job.ts'
import type { MediaAdapter, MediaSubmit } from '../../media/adapter.ts'
import { isSuccess, readPlainRefusal } from '../../media/answer.ts'
import { findMediaFailureStatus } from '../../media/failure.ts'
import { readImages } from '../../media/image-answer.ts'
import { jsonRequest, omitUndefined, throwNotServed } from '../../media/request.ts'
import { arkRefusal, chooseArkCode } from './failure.ts'

/**
 * Returns the number of images. There is no `n`: more than one image is a sequence, and another field gives its
 * maximum.
 */
const chooseCountFields = (n: number): Record<string, unknown> =>
  n > 1
    ? { sequential_image_generation: 'auto', sequential_image_generation_options: { max_images: n } }
    : { sequential_image_generation: 'disabled' }

const chooseImageField = (
  job: JobOf<'image' | 'image_edit'>,
  resolveUrl: MediaSubmit['resolveUrl'],
): unknown => {
  const [first, ...more] = job.images.map(resolveUrl)
  return more.length === 0 ? first : [first, ...more]
}

export const arkImages: MediaAdapter = {
  baseUrl: { end: '/api/v3', appended: '/images/generations' },
  works: ['image'],
  inlines: true,
  submit(channel, { job, upstreamModel, resolveUrl }) {
    if (job.work !== 'image') return throwNotServed(job)
    return jsonRequest(channel, '/images/generations', {
      ...listFurtherFields(job.extra),
      ...omitUndefined({
        model: upstreamModel,
        prompt: job.prompt,
        size: job.size,
        image: chooseImageField(job, resolveUrl),
      }),
      ...chooseCountFields(job.n),
      response_format: 'url',
    })
  },
  readSubmit: (answer) =>
    isSuccess(answer)
      ? readImages(answer, (code) => findMediaFailureStatus(chooseArkCode(code)))
      : arkRefusal(answer, readPlainRefusal(answer, 502)),
  follow: null,
}
