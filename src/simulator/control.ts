/** The control interface, `/simulator/…`: what the provider has seen of its callers. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import { type CallLog, viewOf } from './calls.ts'

const KEPT_REQUEST = /^\/simulator\/calls\/(\d{1,15})\/request$/

/** The request's path and query. */
export type Target = { readonly path: string; readonly query: URLSearchParams }

export function isControlPath(path: string): boolean {
  return path.startsWith('/simulator/')
}

/** Answers one control request; `onClear` runs when the calls are cleared. */
export function answerControl(
  request: IncomingMessage,
  response: ServerResponse,
  target: Target,
  calls: CallLog,
  onClear: () => void,
): void {
  const route = `${request.method} ${target.path}`
  const kept = KEPT_REQUEST.exec(target.path)
  request.resume()
  if (route === 'GET /simulator/calls') {
    send(response, 200, calls.list(target.query.get('request_id')).map(viewOf))
  } else if (route === 'DELETE /simulator/calls') {
    calls.clear()
    onClear()
    response.writeHead(204).end()
  } else if (route === 'GET /simulator/stats') {
    send(response, 200, calls.stats())
  } else if (request.method === 'GET' && kept !== null) {
    const view = calls.request(Number(kept[1]))
    send(response, view === null ? 404 : 200, view ?? { error: 'This request is not, or no longer, kept.' })
  } else {
    send(response, 404, { error: `There is no ${route}.` })
  }
}

function send(response: ServerResponse, status: number, value: unknown): void {
  const body = JSON.stringify(value)
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  })
  response.end(body)
}
