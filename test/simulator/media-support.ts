/** What the tests of the media dialects share: calls with a key, whatever they answer. */

import { setTimeout as sleep } from 'node:timers/promises'
import type { SubmitView, TaskView } from '../../simulator/control.ts'
import type { Json } from './dialects-support.ts'
import { simulatorFor } from './support.ts'

const POLL_MS = 5
export const KEYED = { authorization: 'Bearer sim-key' }

export type MediaAnswer = {
  readonly status: number
  readonly type: string
  readonly bytes: Buffer
  /** The body as JSON; an empty object where it is none. */
  readonly json: Json
}

export type Headers = Readonly<Record<string, string>>

export type MediaClient = {
  readonly url: string
  /** Ends the simulator; one call is enough. */
  close(): Promise<void>
  get(path: string, headers?: Headers): Promise<MediaAnswer>
  post(path: string, body?: object, headers?: Headers): Promise<MediaAnswer>
  remove(path: string, headers?: Headers): Promise<MediaAnswer>
  /** Polls until the answer satisfies the condition; the test's own time limit ends it. */
  until(path: string, condition: (answer: MediaAnswer) => boolean): Promise<MediaAnswer>
  tasks(query?: string): Promise<TaskView[]>
  submits(query?: string): Promise<SubmitView[]>
}

type Teardown = { teardown(task: () => Promise<void>): void }

/** A simulator of its own; its paths, and links that it gave, are called with a key. */
export async function mediaClient(t: Teardown, keyed: Headers = KEYED): Promise<MediaClient> {
  const { url, close } = await simulatorFor(t)
  const call = async (method: string, path: string, body?: object | FormData, headers: Headers = keyed) => {
    const isForm = body instanceof FormData
    const json: Headers = body === undefined || isForm ? {} : { 'content-type': 'application/json' }
    const response = await fetch(path.startsWith('http') ? path : url + path, {
      method,
      headers: { ...json, ...headers },
      ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
    })
    const bytes = Buffer.from(await response.arrayBuffer())
    const type = response.headers.get('content-type') ?? ''
    const isJson = type.startsWith('application/json')
    return { status: response.status, type, bytes, json: (isJson ? JSON.parse(`${bytes}`) : {}) as Json }
  }
  return {
    url,
    close,
    get: (path, headers) => call('GET', path, undefined, headers),
    post: (path, body, headers) => call('POST', path, body, headers),
    remove: (path, headers) => call('DELETE', path, undefined, headers),
    until: async (path, condition) => {
      for (;;) {
        const answer = await call('GET', path)
        if (condition(answer)) return answer
        await sleep(POLL_MS)
      }
    },
    tasks: async (query = '') =>
      (await fetch(`${url}/simulator/tasks?${query}`)).json() as Promise<TaskView[]>,
    submits: async (query = '') =>
      (await fetch(`${url}/simulator/submits?${query}`)).json() as Promise<SubmitView[]>,
  }
}

/** A field of an answer that the test knows to be there. */
export function textAt(json: Json | undefined, ...path: readonly (string | number)[]): string {
  return String(path.reduce<Json | undefined>((value, field) => value?.[field], json))
}

/** Whether a request ended without an answer. */
export async function isCut(request: Promise<unknown>): Promise<boolean> {
  return request.then(
    () => false,
    () => true,
  )
}
