/**
 * A provider of media over HTTP that keeps its jobs. What it takes and answers is the dialect's, written from the
 * documentation of the provider; the first word of a prompt says how its job goes.
 */
import type { IncomingMessage } from 'node:http'
import type { Test } from 'tap'
import { sendJson, serveHttp, textOf } from '../http-server.ts'

export const KEY = 'sk-test-upstream-key-1'
export const FILM = Buffer.concat([Buffer.from('\0\0\0\x18ftypmp42'), Buffer.alloc(500, 7)])
export const PICTURE = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), Buffer.alloc(100, 3)])

/** A frame of MP3: a head, and nothing but zeros. */
export const SOUND = Buffer.concat([Buffer.from('fffb9064', 'hex'), Buffer.alloc(413)])
const FILES = {
  mp4: { type: 'video/mp4', bytes: FILM },
  png: { type: 'image/png', bytes: PICTURE },
  mp3: { type: 'audio/mpeg', bytes: SOUND },
} as const

const FATES = ['good', 'slow', 'cut', 'busy', 'improper', 'broken', 'strange', 'late', 'gone'] as const
export type Fate = (typeof FATES)[number]
export type Stage = 'queued' | 'running' | 'done' | 'broken' | 'improper' | 'strange' | 'late' | 'cancelled'

export interface Call {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly header: (name: string) => string
  // biome-ignore lint/suspicious/noExplicitAny: each provider has a different request body, which its mock reads without a schema.
  readonly body: any
}

export interface Reply {
  readonly status: number
  readonly body?: unknown
}
export const reply = (status: number, body?: unknown): Reply => ({ status, body })

export interface Job {
  readonly id: string
  readonly prompt: string
  readonly fate: Fate
  readonly call: Call
  /** The client's own id of it. */
  readonly reference: string | null
  looks: number
  isCancelled: boolean
}

export interface Desk {
  readonly url: string
  readonly jobs: Job[]
  /** Where a file of a job is; `number` tells several apart. */
  file(job: Job, kind: keyof typeof FILES, number?: number): string
  /** Takes a job on. */
  take(call: Call, prompt: string, reference?: string | null): Job
  find(id: string | null | undefined): Job | undefined
  /** Returns how far a job is: each look brings it further. */
  look(job: Job): Stage
}

export interface Dialect {
  readonly isAuthorized: (call: Call) => boolean
  readonly unauthorized: Reply
  /** The answer to too many requests. */
  readonly busy: Reply
  /** The answer to a submit whose content is refused; null where a job ends so. */
  readonly improper: Reply | null
  /** Files open with the key alone. */
  readonly areFilesClosed?: true
  answer(call: Call, desk: Desk): Reply
}

export const fateOf = (prompt: string): Fate => FATES.find((fate) => prompt.startsWith(fate)) ?? 'good'

const STEPS: Readonly<Record<Fate, readonly Stage[]>> = {
  good: ['queued', 'running', 'done'],
  slow: ['queued'],
  cut: ['queued', 'done'],
  busy: ['queued'],
  improper: ['running', 'improper'],
  broken: ['queued', 'running', 'broken'],
  strange: ['strange'],
  late: ['queued', 'late'],
  gone: ['done'],
}

/** A submit that is answered by nothing. */
class Cut extends Error {}
class Refused extends Error {
  readonly reply: Reply
  constructor(reply: Reply) {
    super('refused')
    this.reply = reply
  }
}

export interface Provider extends Desk {
  readonly calls: Call[]
}

export async function startProvider(t: Test, dialect: Dialect): Promise<Provider> {
  const jobs: Job[] = []
  const provider: Provider = {
    url: '',
    jobs,
    calls: [],
    file: ({ id }, kind, number = 1) => `${provider.url}/files/${id}-${number}.${kind}`,
    take(call, prompt, reference = null) {
      const fate = fateOf(prompt)
      if (fate === 'busy') throw new Refused(dialect.busy)
      if (fate === 'improper' && dialect.improper !== null) throw new Refused(dialect.improper)
      const id = `job-${jobs.length + 1}`
      const job = { id, prompt, fate, call, reference, looks: 0, isCancelled: false }
      jobs.push(job)
      if (fate === 'cut') throw new Cut()
      return job
    },
    find: (id) => jobs.find((job) => job.id === id),
    look(job) {
      if (job.isCancelled) return 'cancelled'
      const steps = STEPS[job.fate]
      return steps[Math.min(job.looks++, steps.length - 1)]!
    },
  }
  const url = await serveHttp(t, (request, response) => {
    void callOf(request).then((call) => {
      if (call.path.startsWith('/files/')) {
        const job = jobs.find(({ id }) => call.path.startsWith(`/files/${id}-`))
        if (job === undefined || job.fate === 'gone') return response.writeHead(410).end()
        if (dialect.areFilesClosed && !dialect.isAuthorized(call)) return response.writeHead(403).end()
        const { type, bytes } = FILES[call.path.slice(-3) as keyof typeof FILES]
        return response.writeHead(200, { 'content-type': type }).end(bytes)
      }
      provider.calls.push(call)
      try {
        const { status, body } = dialect.isAuthorized(call)
          ? dialect.answer(call, provider)
          : dialect.unauthorized
        return response
          .writeHead(status, { 'content-type': 'application/json' })
          .end(body === undefined ? '' : JSON.stringify(body))
      } catch (error) {
        if (error instanceof Cut) return response.destroy()
        if (!(error instanceof Refused)) return response.writeHead(500).end(String(error))
        const { status, body } = error.reply
        return sendJson(response, status, body)
      }
    })
  })
  return Object.assign(provider, { url })
}

async function callOf(request: IncomingMessage): Promise<Call> {
  const text = await textOf(request)
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://provider.test')
  return {
    method: request.method ?? '',
    path: pathname,
    query: searchParams,
    header: (name) => String(request.headers[name] ?? ''),
    body: text === '' ? null : JSON.parse(text),
  }
}
