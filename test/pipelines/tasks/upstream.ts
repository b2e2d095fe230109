/** A small upstream over HTTP whose behaviour each prompt scripts, and the adapters that speak to it. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Test } from 'tap'
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import { emptyResult, type MediaJob } from '../../../schemas/media/job.ts'
import type {
  MediaAdapter,
  MediaAnswer,
  MediaRequest,
  Produced,
  SubmitOutcome,
} from '../../../src/channels/media/adapter.ts'
import { sendJson, serveHttp, textOf } from '../../support/http-server.ts'

/** What one prompt makes the upstream do. Polls give one of `states` after the other, the last for ever. */
export interface Plan {
  /** Accept is the default. A number is an error of that status. */
  readonly submit?: 'accept' | 'cut' | 'drop' | 'hang' | 'nonsense' | number
  /** The `retry-after` of such an error. */
  readonly retryAfter?: string
  readonly states?: readonly (
    | 'queued'
    | 'running'
    | 'succeeded'
    | 'failed'
    | 'unauthorized'
    | 'strange'
    | 'expired'
    | 'down'
  )[]
  /** How many files of its the upstream has no more when they are fetched. */
  readonly lostFiles?: boolean
  /** No file of its is answered when it is fetched. */
  readonly hangingFiles?: boolean
  /** How many pictures there are in an answer with pictures; 1 when it is left out. */
  readonly pictures?: number
  /** What it delivers in place of a film. */
  readonly file?: Buffer
  /** What an answer with pictures has in their place. */
  readonly images?: readonly Buffer[]
  /** How long a film is said to be; 4 when it is left out. */
  readonly seconds?: number
}

interface Work {
  readonly id: string
  readonly reference: string
  readonly plan: Plan
  polls: number
}

export const FILM = Buffer.concat([Buffer.from('\0\0\0\x18ftypmp42'), Buffer.alloc(500, 7)])
export const PICTURE = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), Buffer.alloc(100, 3)])

export interface TestUpstream {
  readonly url: string
  readonly plans: Map<string, Plan>
  /** By our reference, how often it was submitted, over all channels. */
  readonly submits: Map<string, number>
  readonly works: Map<string, Work>
  polls: number
  /** Each path that was asked for, in order. */
  readonly paths: string[]
}

export async function startUpstream(t: Test): Promise<TestUpstream> {
  const works = new Map<string, Work>()
  const upstream = { url: '', plans: new Map(), submits: new Map(), works, polls: 0, paths: [] as string[] }
  upstream.url = await serveHttp(t, (request, response) => void answer(upstream, request, response))
  return upstream
}

async function answer(upstream: TestUpstream, request: IncomingMessage, response: ServerResponse) {
  const body = JSON.parse((await textOf(request)) || '{}') as Record<string, string>
  const json = (status: number, value: unknown, headers = {}) => sendJson(response, status, value, headers)
  const path = request.url ?? ''
  upstream.paths.push(path)
  if (path.endsWith('/submit') || path.endsWith('/draw')) return submit(upstream, body, response, json)
  if (path.includes('/found/')) {
    const found = [...upstream.works.values()].find(({ reference }) => reference === path.split('/').at(-1))
    return found === undefined ? json(404, {}) : json(200, { id: found.id })
  }
  const work = upstream.works.get(path.split('/').at(-1)!.split('.')[0]!)
  if (work === undefined) return json(404, {})
  if (path.includes('/file/')) {
    if (work.plan.lostFiles) return json(410, {})
    if (work.plan.hangingFiles) return undefined
    return void response.writeHead(200, { 'content-type': 'video/mp4' }).end(work.plan.file ?? FILM)
  }
  upstream.polls++
  const states = work.plan.states ?? ['succeeded']
  const state = states[Math.min(work.polls++, states.length - 1)]
  if (state === 'down') return json(503, { error: 'down' })
  const seconds = String(work.plan.seconds ?? 4)
  return json(200, { state, seconds, url: `${upstream.url}/file/${work.id}.mp4` })
}

/** Bytes in base64, one after the other. */
const picturesOf = ({ images, pictures = 1 }: Plan): string =>
  (images ?? Array<Buffer>(pictures).fill(PICTURE)).map((bytes) => bytes.toString('base64')).join(' ')

function submit(
  upstream: TestUpstream,
  { reference = '', prompt = '' }: Record<string, string>,
  response: ServerResponse,
  json: (status: number, value: unknown, headers?: Record<string, string>) => void,
) {
  upstream.submits.set(reference, (upstream.submits.get(reference) ?? 0) + 1)
  const plan = upstream.plans.get(prompt) ?? {}
  const id = `up-${upstream.works.size + 1}`
  if (typeof plan.submit === 'number') {
    const headers = plan.retryAfter === undefined ? undefined : { 'retry-after': plan.retryAfter }
    return json(plan.submit, { error: 'no, says the upstream' }, headers)
  }
  if (plan.submit === 'drop') return response.destroy()
  upstream.works.set(id, { id, reference, plan, polls: 0 })
  switch (plan.submit ?? 'accept') {
    case 'cut':
      return response.destroy()
    case 'hang':
      return undefined
    case 'nonsense':
      return void response.writeHead(200).end('<html>')
    default:
      return json(200, { id, images: picturesOf(plan) })
  }
}

const promptOf = (job: MediaJob): string =>
  job.work === 'video'
    ? job.content.map((part) => (part.type === 'text' ? part.text : '')).join('')
    : 'prompt' in job
      ? (job.prompt ?? '')
      : ''

const post = ({ base_url }: ChannelEntry, path: string, value: unknown): MediaRequest => ({
  method: 'POST',
  url: `${base_url}${path}`,
  headers: [],
  body: { type: 'json', value },
})
const get = ({ base_url }: ChannelEntry, path: string): MediaRequest => ({
  method: 'GET',
  url: `${base_url}${path}`,
  headers: [],
  body: null,
})

function read({ body }: MediaAnswer): Record<string, string> | null {
  try {
    return JSON.parse(body.toString()) as Record<string, string>
  } catch {
    return null
  }
}

function refusedOr(
  answer: MediaAnswer,
  otherwise: (body: Record<string, string>) => SubmitOutcome,
): SubmitOutcome {
  const body = read(answer)
  if (body === null) return { type: 'unknown', reason: 'not JSON' }
  if (answer.status >= 400) return { type: 'refused', status: answer.status, message: body.error ?? '' }
  return otherwise(body)
}

const film = (url: string, seconds: number): Produced => {
  const file = { role: 'video', upstream_url: url, key: null, media_type: null } as const
  const files = [{ ...file, width: null, height: null, seconds, track: null }]
  return { type: 'produced', result: { ...emptyResult(), files, seconds }, inline: [] }
}

/** Works on after it answered. */
export const filmAdapter = (canFind: boolean): MediaAdapter => ({
  works: ['video'],
  baseUrl: 'any',
  inlines: false,
  submit: (channel, { job, reference }) => post(channel, '/submit', { reference, prompt: promptOf(job) }),
  readSubmit: (answer) =>
    refusedOr(answer, ({ id }) => ({
      type: 'accepted',
      upstreamId: id!,
      isRunning: false,
      upstreamState: 'queued',
    })),
  follow: {
    poll: (channel, { upstreamId }) => get(channel, `/poll/${upstreamId}`),
    readPoll: (answer) => {
      const body = read(answer)
      if (answer.status !== 200 || body === null) return { type: 'error', reason: `status ${answer.status}` }
      const upstreamState = body.state!
      switch (upstreamState) {
        case 'queued':
        case 'running':
          return { type: upstreamState, upstreamState }
        case 'succeeded':
          return { ...film(body.url!, Number(body.seconds)), upstreamState }
        case 'unauthorized':
          return {
            type: 'failed',
            upstreamState,
            code: 'unauthorized',
            message: 'not fit to be shown',
          }
        case 'failed':
          return {
            type: 'failed',
            upstreamState,
            code: 'content_policy_violation',
            message: 'not fit to be shown',
          }
        case 'expired':
          return { type: 'lapsed', upstreamState }
        default:
          return { type: 'unmapped', upstreamState }
      }
    },
    find: canFind
      ? {
          request: (channel, reference) => get(channel, `/found/${reference}`),
          read: (answer) => {
            const id = read(answer)?.id
            if (answer.status === 404) return { type: 'refused', status: 404, message: 'unknown' }
            if (id === undefined) return { type: 'unknown', reason: `status ${answer.status}` }
            return { type: 'accepted', upstreamId: id, isRunning: false, upstreamState: 'queued' }
          },
        }
      : undefined,
  },
})

/** Answers with the result itself. */
export const pictureAdapter: MediaAdapter = {
  works: ['image'],
  baseUrl: 'any',
  inlines: false,
  submit: (channel, { job, reference }) => post(channel, '/draw', { reference, prompt: promptOf(job) }),
  readSubmit: (answer) =>
    refusedOr(answer, ({ images }) => {
      const file = { role: 'image', upstream_url: null, key: null, media_type: null } as const
      const facts = { width: 64, height: 64, seconds: null, track: null }
      const inline = images!.split(' ').map((bytes, at) => {
        return { file: at, bytes: Buffer.from(bytes, 'base64'), mediaType: 'image/png' }
      })
      const files = inline.map(() => ({ ...file, ...facts }))
      return { type: 'produced', result: { ...emptyResult(), files }, inline }
    }),
  follow: null,
}
