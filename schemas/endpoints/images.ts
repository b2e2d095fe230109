/** Images. */

import {
  imageEditForm,
  imageEditRequest,
  imageRequest,
  imagesOrTask,
  imageTask,
  imageTaskList,
} from '../media/images.ts'
import { jsonAnswer, type RouteDescription } from './endpoint.ts'
import { CREATE_FAILURES, createEndpoint, describeTaskEndpoints } from './media.ts'

const TAG = 'Images'
const MODEL = 'demo-image'

const makingImages = {
  ...createEndpoint,
  tag: TAG,
  failures: [...CREATE_FAILURES, 'idempotency_response_not_cached'],
  answers: [jsonAnswer('ImagesOrTask', imagesOrTask)],
} as const

const BILLED =
  'Price x n is held; the images that were made are charged, and the hold of a request that fails goes back in full.'
const WAITING =
  'The answer waits for at most 280 seconds; after 90 of them it is kept alive with spaces before the JSON, and its ' +
  'status is 200 whatever comes of it: then an object with `error` is no success. With `async`, a task to poll.'

export const imageEndpoints: readonly RouteDescription[] = [
  {
    ...makingImages,
    name: 'makeImages',
    summary: 'Make images from words.',
    details:
      `${BILLED} ${WAITING} Models in the manner of a grid always make four: of a size they take only the nearest ` +
      'ratio of 1:1, 16:9, 9:16, 4:3 and 3:4, and `--hd` or `--sd` at the end of the prompt, or `quality`, says how ' +
      'fine they draw. To models that take no size the ratio is put into the prompt. Other fields are ignored.',
    body: { name: 'ImageRequest', schema: imageRequest },
    example: { model: MODEL, prompt: 'A lighthouse at dusk, woodcut', size: '1024x768' },
  },
  {
    ...makingImages,
    name: 'editImages',
    summary: 'Make images from images and words.',
    details:
      'As JSON of at most 32 MiB, or as a multipart form of at most 64 MiB with the same fields and files in `image[]` ' +
      `(or \`image\`) and \`mask\`. ${BILLED} ${WAITING}`,
    body: { name: 'ImageEditRequest', schema: imageEditRequest },
    form: { name: 'ImageEditForm', schema: imageEditForm },
    example: { model: MODEL, prompt: 'Make it night.', image: 'https://example.com/lighthouse.png' },
  },
  ...describeTaskEndpoints({
    names: ['listImages', 'showImage', 'cancelImage', 'deleteImageFiles'],
    tag: TAG,
    kind: 'image',
    one: 'an image task',
    name: 'ImageTask',
    task: imageTask,
    list: imageTaskList,
    listing: { summary: 'List the image tasks of the account, including those that a request waited for.' },
  }),
]
