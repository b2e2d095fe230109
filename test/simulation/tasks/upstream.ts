/** Upstreams that take tasks on, lose answers, hang, fail and finish, and that note what should never be asked of them. */

import { MediaCallFailure, type MediaCalls, type MediaSendOptions } from '../../../pipelines/tasks/ports.ts'
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import { emptyResult } from '../../../schemas/media/job.ts'
import type {
  MediaAdapter,
  MediaAnswer,
  MediaRequest,
  SubmitOutcome,
} from '../../../src/channels/media/adapter.ts'
import type { Random } from '../random.ts'
import type { Process, VirtualTime } from '../virtual-time.ts'
import type { TaskFaults } from './task-faults.ts'

const LATENCY_MAX_MS = 200
const WORK_MAX_MS = 40_000
/** A process that read the row just before its end may still poll. */
const LATE_LOOK_MS = 5_000

export interface Work {
  readonly id: string
  readonly reference: string
  readonly startsAt: number
  readonly endsAt: number
  readonly end: 'succeeded' | 'failed' | 'expired' | 'strange'
  /** What it delivers: seconds, or pictures. */
  readonly amount: number
}

interface Submit {
  readonly process: Process
  readonly isAsync: boolean
  /** The sender does not know that it was refused, or never sent. */
  isOpen: boolean
}

interface World {
  readonly time: VirtualTime
  readonly random: Random
  readonly faults: TaskFaults
  readonly problems: string[]
}

export class Upstream {
  readonly #world: World
  readonly works = new Map<string, Work>()
  readonly #submits = new Map<string, Submit[]>()
  /** When tasks ended, by our reference. */
  readonly ends = new Map<string, number>()
  /** Whether operators have a record of the task: they may ask about it as long as they like. */
  isLost: (reference: string) => boolean = () => false
  looks = 0

  constructor(world: World) {
    this.#world = world
  }

  callsOf(process: Process): MediaCalls {
    return {
      makeHeaders: async ({ headers }) => headers,
      send: (request, options) =>
        new Promise((resolve, reject) => this.#send(process, request, options, resolve, reject)),
    }
  }

  #send(
    process: Process,
    request: MediaRequest,
    { timeoutMs }: MediaSendOptions,
    resolve: (answer: MediaAnswer) => void,
    reject: (error: Error) => void,
  ): void {
    const { time, random, faults } = this.#world
    const fail = (delayMs: number, isSent: boolean, isTimeout: boolean) =>
      process.settleAfter(delayMs, () => reject(new MediaCallFailure('cut', { isSent, isTimeout })))
    if (faults.dies(process)) return
    const submit = this.#noted(process, request)
    if (faults.happens(0.06)) {
      if (submit !== null) submit.isOpen = false
      return fail(random.int(0, 50), false, false)
    }
    const isLost = faults.happens(0.05)
    const isHanging = faults.happens(0.03)
    // It arrives whether its sender lives on or not.
    time.after(random.int(0, LATENCY_MAX_MS), () => {
      if (isLost) return fail(random.int(0, 50), true, false)
      const answer = this.#answer(request)
      if (isHanging) return fail(timeoutMs, true, true)
      if (faults.happens(0.06)) return fail(random.int(0, 50), true, false)
      process.settleAfter(random.int(0, Math.min(timeoutMs, LATENCY_MAX_MS)), () => {
        // In the very moment in which it would learn what became of it.
        if (faults.happens(0.05)) return process.die()
        if (submit !== null && answer.status >= 400) submit.isOpen = false
        resolve({ status: answer.status, header: () => null, body: Buffer.from(JSON.stringify(answer.body)) })
      })
    })
  }

  /** Null for what is no submit. */
  #noted(process: Process, { url, body }: MediaRequest): Submit | null {
    if (body?.type !== 'json') return null
    const { reference } = body.value as { reference: string }
    const isAsync = url.endsWith('/submit')
    const before = this.#submits.get(reference) ?? []
    // One that answers with the result itself may be asked again, but never by a process that took over.
    if (before.some((one) => one.isOpen && (isAsync || one.process !== process)))
      this.#world.problems.push('a task was submitted again that may have been taken on')
    if (this.ends.has(reference)) this.#world.problems.push('a task was submitted behind its end')
    const submit = { process, isAsync, isOpen: true }
    this.#submits.set(reference, [...before, submit])
    return submit
  }

  #answer({ url, body }: MediaRequest): { status: number; body: unknown } {
    const { random } = this.#world
    if (body?.type === 'json') {
      const { reference } = body.value as { reference: string }
      if (random.chance(0.08)) return { status: 422, body: { error: 'refused' } }
      if (random.chance(0.1)) return { status: random.pick([429, 500, 503]), body: { error: 'busy' } }
      return { status: 200, body: this.#takenOn(reference) }
    }
    const name = url.split('/').at(-1)!
    if (url.includes('/found/')) {
      const work = [...this.works.values()].find(({ reference }) => reference === name)
      return work === undefined ? { status: 404, body: {} } : { status: 200, body: work }
    }
    return this.#look(name)
  }

  #takenOn(reference: string): Work {
    const { time, random } = this.#world
    const startsAt = time.now + random.int(0, 5_000)
    const work: Work = {
      id: `up-${this.works.size + 1}`,
      reference,
      startsAt,
      endsAt: startsAt + random.int(0, WORK_MAX_MS) * (random.chance(0.1) ? 100 : 1),
      end: random.pick(['succeeded', 'succeeded', 'succeeded', 'succeeded', 'failed', 'expired', 'strange']),
      amount: random.int(1, 4),
    }
    this.works.set(work.id, work)
    return work
  }

  #look(id: string): { status: number; body: unknown } {
    const { time, random, faults, problems } = this.#world
    this.looks++
    const work = this.works.get(id)!
    const endedAt = this.ends.get(work.reference)
    if (endedAt !== undefined && time.now - endedAt > LATE_LOOK_MS && !this.isLost(work.reference))
      problems.push('a task was polled after its end')
    if (faults.happens(0.1)) return { status: random.pick([404, 500, 502]), body: {} }
    const state = time.now < work.startsAt ? 'queued' : time.now < work.endsAt ? 'running' : work.end
    return { status: 200, body: { ...work, state } }
  }
}

type Body = Partial<Work> & { readonly state?: string; readonly error?: string }
const read = ({ body }: MediaAnswer): Body => JSON.parse(body.toString()) as Body

const request = (channel: ChannelEntry, path: string, value: unknown = null): MediaRequest => ({
  method: value === null ? 'GET' : 'POST',
  url: `${channel.base_url}${path}`,
  headers: [],
  body: value === null ? null : { type: 'json', value },
})

const refusedOr = (answer: MediaAnswer, otherwise: (body: Body) => SubmitOutcome): SubmitOutcome =>
  answer.status >= 400
    ? { type: 'refused', status: answer.status, message: read(answer).error ?? '' }
    : otherwise(read(answer))

const emptyFile = { key: null, media_type: null, width: null, height: null, seconds: null, track: null }

export const asyncAdapter = (canFind: boolean): MediaAdapter => ({
  works: ['video'],
  baseUrl: 'any',
  inlines: false,
  submit: (channel, { reference }) => request(channel, '/submit', { reference }),
  readSubmit: (answer) =>
    refusedOr(answer, ({ id }) => ({
      type: 'accepted',
      upstreamId: id!,
      isRunning: false,
      upstreamState: 'queued',
    })),
  follow: {
    poll: (channel, { upstreamId }) => request(channel, `/poll/${upstreamId}`),
    readPoll: (answer) => {
      if (answer.status !== 200) return { type: 'error', reason: 'down' }
      const { state: upstreamState = '', amount = 0, id } = read(answer)
      switch (upstreamState) {
        case 'queued':
        case 'running':
          return { type: upstreamState, upstreamState }
        case 'failed':
          return { type: 'failed', upstreamState, code: 'generation_failed', message: 'failed' }
        case 'expired':
          return { type: 'lapsed', upstreamState }
        case 'succeeded': {
          const files = [{ ...emptyFile, role: 'video' as const, upstream_url: `http://up.test/file/${id}` }]
          const result = { ...emptyResult(), files, seconds: amount }
          return { type: 'produced', upstreamState, result, inline: [] }
        }
        default:
          return { type: 'unmapped', upstreamState }
      }
    },
    find: canFind
      ? {
          request: (channel, reference) => request(channel, `/found/${reference}`),
          read: (answer) => {
            if (answer.status === 404) return { type: 'refused', status: 404, message: 'unknown' }
            if (answer.status !== 200) return { type: 'unknown', reason: 'down' }
            return {
              type: 'accepted',
              upstreamId: read(answer).id!,
              isRunning: false,
              upstreamState: 'queued',
            }
          },
        }
      : undefined,
  },
})

export const wholeAdapter: MediaAdapter = {
  works: ['image'],
  baseUrl: 'any',
  inlines: false,
  submit: (channel, { reference }) => request(channel, '/draw', { reference }),
  readSubmit: (answer) =>
    refusedOr(answer, ({ amount = 0 }) => {
      const files = Array.from({ length: amount }, () => ({
        ...emptyFile,
        role: 'image' as const,
        upstream_url: null,
      }))
      const bytes = Buffer.from('picture')
      const inline = files.map((_, file) => ({ file, bytes, mediaType: 'image/png' }))
      return { type: 'produced', result: { ...emptyResult(), files }, inline }
    }),
  follow: null,
}
