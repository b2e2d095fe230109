/** Sessions of the management API for tests: signed in by a link, as a browser does it. */

import type { User } from '../../schemas/accounts/people.ts'
import type { InstallationRole } from '../../schemas/management/operation.ts'
import { generateToken, hashToken } from '../../src/core/keys/bearer-token.ts'
import type { Database } from '../../src/postgres/database.ts'

interface Service {
  readonly baseUrl: string
  readonly database: Database
}

export interface ManageAnswer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: each operation has a different response body, and a test asserts the fields that it reads.
  readonly body: any
}

/** Sends requests as a page of the console does, in one session. */
export interface ManageClient {
  readonly user: User
  readonly cookie: string
  readonly csrfToken: string
  send(method: string, path: string, body?: object, headers?: Record<string, string>): Promise<ManageAnswer>
  upload(
    path: string,
    files: Readonly<Record<string, string | Uint8Array<ArrayBuffer>>>,
  ): Promise<ManageAnswer>
}

export const MANAGE = '/api/manage/v1'

let made = 0

/** Creates a user, signs them in, and returns their session. */
export async function signIn(
  { baseUrl, database }: Service,
  more: { readonly role?: InstallationRole; readonly accountId?: string; readonly user?: User } = {},
): Promise<ManageClient> {
  const user =
    more.user ??
    (await database.users.create({
      email: `user-${process.pid}-${made++}@example.com`,
      name: 'Ada',
      installationRole: more.role ?? null,
      credit: 0n,
      ...(more.accountId && { accountId: more.accountId }),
    }))
  const token = generateToken()
  await database.sessions.createLink({ tokenHash: hashToken(token), userId: user.id, minutes: 5 })
  const headers = { 'content-type': 'application/json', origin: baseUrl }
  const response = await fetch(`${baseUrl}${MANAGE}/sign-in/link`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ token }),
  })
  const session = (await response.json()) as { csrf_token: string }
  const cookie = response.headers.getSetCookie()[0]!.split(';')[0]!
  return {
    user,
    cookie,
    csrfToken: session.csrf_token,
    async send(method, path, body, given = {}) {
      const answer = await fetch(`${baseUrl}${MANAGE}${path}`, {
        method,
        headers: { ...headers, cookie, 'x-csrf-token': session.csrf_token, ...given },
        ...(body && { body: JSON.stringify(body) }),
      })
      return { status: answer.status, body: await answer.json() }
    },
    async upload(path, files) {
      const body = new FormData()
      for (const [name, content] of Object.entries(files)) body.append('file', new Blob([content]), name)
      const answer = await fetch(`${baseUrl}${MANAGE}${path}`, {
        method: 'POST',
        headers: { origin: baseUrl, cookie, 'x-csrf-token': session.csrf_token },
        body,
      })
      return { status: answer.status, body: await answer.json() }
    },
  }
}
