/** What tests of images share: the demonstration with one more model, pictures that are checked, and forms. */
import { request } from 'node:http'
import { type ImageFacts, readImageFacts } from '../../../src/core/media/image-size.ts'
import type { LentService } from '../../support/service.ts'
import { receivedIn, upstreamCalls } from '../support.ts'
import { type Answer, demonstrationWith, type MediaClient } from './support.ts'

export const GENERATIONS = '/v1/images/generations'
export const EDITS = '/v1/images/edits'

const QUEUED_MODEL = `
  - id: queued-image
    endpoint_type: images_generations
    pricing: { unit: image, per_unit: "7" }
`
const QUEUED_CHANNEL = `
  - id: queue
    protocol: task
    base_url: \${TEST_SIMULATOR_URL}/task
    api_key: sim-test
    models: { queued-image: sim-paint }
`

/** With a model whose upstream has a queue, besides those that answer at once. */
export const withQueuedImages = (): string => demonstrationWith(QUEUED_MODEL, QUEUED_CHANNEL)

/** What the upstream of the newest request for images received. */
export async function lastSent(service: LentService): Promise<string> {
  const call = (await upstreamCalls(service)).findLast(({ model }) => model !== null)
  if (call === undefined) throw new Error('the upstream was never called')
  return (await receivedIn(service, call)).bytes.toString('latin1')
}

export interface LinkedImage {
  readonly url: string
}
export const linksIn = ({ data }: Record<string, unknown>): string[] =>
  (data as LinkedImage[]).map(({ url }) => url)

export interface SeenPicture {
  readonly bytes: Buffer
  readonly type: string | null
  readonly facts: ImageFacts | null
}

/** The link is enough to get the picture: no key is sent. */
export async function pictureAt(url: string): Promise<SeenPicture> {
  const response = await fetch(url)
  const bytes = Buffer.from(await response.arrayBuffer())
  return { bytes, type: response.headers.get('content-type'), facts: readImageFacts(bytes) }
}

/** Width and height of each picture, such as `1024x768`. */
export async function sizesOf(answer: Answer): Promise<string[]> {
  const pictures = await Promise.all(linksIn(answer.body).map(pictureAt))
  return pictures.map(({ facts }) => `${facts?.width}x${facts?.height}`)
}

export type FormEntry = readonly [name: string, value: string | Buffer]

/** Files are PNGs, whatever is in them. */
export async function postForm(
  service: LentService,
  { key }: Pick<MediaClient, 'key'>,
  entries: readonly FormEntry[],
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const form = new FormData()
  for (const [index, [name, value]] of entries.entries())
    if (typeof value === 'string') form.append(name, value)
    else form.append(name, new Blob([new Uint8Array(value)], { type: 'image/png' }), `picture ${index}.png`)
  const response = await fetch(service.baseUrl + EDITS, {
    method: 'POST',
    body: form,
    headers: { authorization: `Bearer ${key}`, ...headers },
  })
  const trace = response.headers.get('x-gateway-trace') ?? ''
  return {
    status: response.status,
    body: (await response.json()) as Record<string, unknown>,
    headers: response.headers,
    trace,
  }
}

/** The answer to a request whose head says that its body is so long; the body never comes. */
export const statusFor = (
  service: LentService,
  { key }: Pick<MediaClient, 'key'>,
  contentType: string,
  bytes: number,
): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': contentType, 'content-length': bytes }
    const outgoing = request(service.baseUrl + EDITS, { method: 'POST', headers })
    outgoing.on('response', ({ statusCode }) => {
      resolve(statusCode)
      outgoing.destroy()
    })
    outgoing.on('error', reject)
    outgoing.flushHeaders()
  })
