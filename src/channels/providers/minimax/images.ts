/** MiniMax's images: made within the request. */
import { z } from 'zod'
import { listFurtherFields } from '../../../../schemas/media/images.ts'
import type { MediaAdapter, MediaAnswer, SubmitOutcome } from '../../media/adapter.ts'
import { isSuccess, looseText, makeUnknown, readFields, readPlainRefusal } from '../../media/answer.ts'
import { decodeSource, makeProduced, toDelivered, toSource } from '../../media/files.ts'
import { findNearestRatio } from '../../media/ratio.ts'
import { jsonRequest, omitUndefined, throwNotServed } from '../../media/request.ts'
import { minimaxFailure, minimaxRefusal } from './failure.ts'

const RATIOS = ['1:1', '16:9', '4:3', '3:2', '2:3', '3:4', '9:16', '21:9']

const texts = z.array(looseText).catch([]).default([])
const made = z.looseObject({ image_urls: texts, image_base64: texts })

/** Reads the images. Those that were filtered are not there, and are not charged. */
function readSubmit(answer: MediaAnswer): SubmitOutcome {
  if (!isSuccess(answer)) return readPlainRefusal(answer, 502)
  const failure = minimaxFailure(answer)
  if (failure !== null) return minimaxRefusal(failure)
  const { image_urls = [], image_base64 = [] } = made.safeParse(readFields(answer)?.data).data ?? {}
  const sources = [
    ...image_urls.map(toSource),
    ...image_base64.map((text) => (text === null ? null : decodeSource(text, 'image/jpeg'))),
  ]
  const images = sources.flatMap((source) => toDelivered('image', source))
  return images.length === 0 ? makeUnknown('The answer holds no image.') : makeProduced(images)
}

export const minimaxImages: MediaAdapter = {
  baseUrl: { end: '/v1', appended: '/image_generation' },
  works: ['image'],
  inlines: true,
  submit(channel, { job, upstreamModel, resolveUrl }) {
    if (job.work !== 'image') return throwNotServed(job)
    const [image] = job.images
    const { seed, watermark } = listFurtherFields(job.extra)
    return jsonRequest(
      channel,
      '/image_generation',
      omitUndefined({
        model: upstreamModel,
        prompt: job.prompt,
        aspect_ratio: findNearestRatio(job.size, RATIOS),
        n: job.n,
        response_format: 'url',
        seed,
        aigc_watermark: watermark,
        subject_reference: image && [{ type: 'character', image_file: resolveUrl(image) }],
      }),
    )
  },
  readSubmit,
  follow: null,
}
