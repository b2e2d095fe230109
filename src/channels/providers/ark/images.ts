/** Ark's images interface: like OpenAI's, with reference images in the same request. */
import { listFurtherFields } from '../../../../schemas/media/images.ts'
import type { JobOf } from '../../../../schemas/media/job.ts'
import type { MediaAdapter, MediaSubmit } from '../../media/adapter.ts'
import { isSuccess, refusal } from '../../media/answer.ts'
import { mediaFailureStatus } from '../../media/failure.ts'
import { readImages } from '../../media/image-answer.ts'
import { definedFields, jsonRequest, notServed } from '../../media/request.ts'
import { arkFailureCode, arkRefusal } from './failure.ts'

/**
 * Returns the number of images. There is no `n`: more than one image is a sequence, and another field gives its
 * maximum.
 */
const countOf = (n: number): Record<string, unknown> =>
  n > 1
    ? { sequential_image_generation: 'auto', sequential_image_generation_options: { max_images: n } }
    : { sequential_image_generation: 'disabled' }

const imageOf = (job: JobOf<'image' | 'image_edit'>, resolveUrl: MediaSubmit['resolveUrl']): unknown => {
  const [first, ...more] = job.images.map(resolveUrl)
  return more.length === 0 ? first : [first, ...more]
}

export const arkImages: MediaAdapter = {
  baseUrl: { end: '/api/v3', appended: '/images/generations' },
  works: ['image'],
  inlines: true,
  submit(channel, { job, upstreamModel, resolveUrl }) {
    if (job.work !== 'image') return notServed(job)
    return jsonRequest(channel, '/images/generations', {
      ...listFurtherFields(job.extra),
      ...definedFields({
        model: upstreamModel,
        prompt: job.prompt,
        size: job.size,
        image: imageOf(job, resolveUrl),
      }),
      ...countOf(job.n),
      response_format: 'url',
    })
  },
  readSubmit: (answer) =>
    isSuccess(answer)
      ? readImages(answer, (code) => mediaFailureStatus(arkFailureCode(code)))
      : arkRefusal(answer, refusal(answer, 502)),
  follow: null,
}
