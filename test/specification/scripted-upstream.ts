/** A provider of chat that answers a request exactly as its statement has written. */
import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Teardown } from '../support/engines.ts'
import { sendJson, serveHttp, textOf } from '../support/http-server.ts'
import { FILM } from '../support/media-providers/provider.ts'

/** A video is there. */
export const FILM_PATH = '/film.mp4'

export interface ReceivedRequest {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
}
type Answerer = (response: ServerResponse, received: ReceivedRequest) => unknown

export interface Script {
  /** Has to stand in the request: in what the user says. */
  readonly word: string
  /** What came in for it, the oldest first. */
  readonly received: ReceivedRequest[]
}

export interface ScriptedUpstream {
  readonly url: string
  /** Requests that hold the script's word are answered so. */
  script(answer: Answerer): Script
}

export async function startScriptedUpstream(t: Teardown): Promise<ScriptedUpstream> {
  const scripts = new Map<string, { readonly answer: Answerer; readonly received: ReceivedRequest[] }>()
  const url = await serveHttp(t, (request, response) => {
    if (request.url === FILM_PATH)
      return void response.writeHead(200, { 'content-type': 'video/mp4' }).end(FILM)
    void textOf(request).then((text) => {
      const [word = ''] = /script-[0-9a-f]{16}/.exec(text) ?? []
      const script = scripts.get(word)
      if (script === undefined) return response.writeHead(500).end('no script')
      const received = { path: request.url ?? '', headers: request.headers, text }
      script.received.push(received)
      return script.answer(response, received)
    })
  })
  return {
    url,
    script(answer) {
      const word = `script-${randomBytes(8).toString('hex')}`
      const received: ReceivedRequest[] = []
      scripts.set(word, { answer, received })
      return { word, received }
    },
  }
}

/** Answers with JSON. */
export const json =
  (status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Answerer =>
  (response) =>
    sendJson(response, status, value, headers)

/** Answers with these events, and ends. */
export const events =
  (...written: readonly string[]): Answerer =>
  (response) =>
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(written.join(''))

/** Answers with these events, and breaks the connection. */
export const eventsThenCut =
  (...written: readonly string[]): Answerer =>
  (response) =>
    response
      .writeHead(200, { 'content-type': 'text/event-stream' })
      .write(written.join(''), () => setTimeout(() => response.destroy(), CUT_AFTER_MS))
/** So that the events have left. */
const CUT_AFTER_MS = 20
