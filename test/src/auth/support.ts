/** A local token server, and the access of a channel whose `auth` leads to it. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Test } from 'tap'
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import { type Authorizer, type AuthorizerDeps, authorizers } from '../../../src/auth/authorizer.ts'
import { serveHttp, textOf } from '../../support/http-server.ts'
import { channelOf } from '../channels/providers/support.ts'

export const FIVE_MINUTES_MS = 5 * 60_000
export const HOUR_MS = 60 * 60_000
export const NO_REQUEST = {
  method: 'POST',
  url: new URL('https://upstream.test/'),
  contentType: 'application/json',
  body: new Uint8Array(),
}

export interface Asked {
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** Serves until the test ends. `answer` gets each request with its body, and which it is, from 1 on. */
export async function serve(
  t: Test,
  answer: (asked: Asked, response: ServerResponse, number: number) => void,
): Promise<{ url: string; asked: Asked[] }> {
  const asked: Asked[] = []
  const url = await serveHttp(t, async (request, response) => {
    const one = { path: request.url ?? '', headers: request.headers, body: await textOf(request) }
    answer(one, response, asked.push(one))
  })
  return { url, asked }
}

export interface Opened {
  readonly channel: ChannelEntry
  readonly access: Authorizer
  readonly tokens: string[]
  readonly problems: string[]
}

/** Opens the access of a channel with this `auth`. */
export function open(auth: string, deps: Partial<AuthorizerDeps> = {}): Opened {
  const channel = channelOf(`provider: openai, auth: { ${auth} }`)
  const tokens: string[] = []
  const problems: string[] = []
  const access = authorizers({
    fetch,
    now: Date.now,
    elapsed: deps.now ?? (() => performance.now()),
    env: {},
    onToken: (token) => tokens.push(token),
    onFailure: (_, problem) => problems.push(problem),
    ...deps,
  })(channel)
  return { channel, access, tokens, problems }
}

export const authorizationOf = async (access: Authorizer): Promise<string> => {
  const { headers } = await access.authorize(NO_REQUEST)
  return headers.find(([name]) => name === 'authorization')?.[1] ?? ''
}
