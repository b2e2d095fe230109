/** The cookie of a session: over HTTPS it is bound to the host and crosses no network in the clear. */
import t from 'tap'
import { sessionCookie, sessionToken } from '../../../pipelines/management/session.ts'

const head = (host: string, cookie = '') => ({
  header: (name: string) => ({ host, cookie })[name] ?? '',
})

t.test('over HTTPS the cookie belongs to this host alone', async (t) => {
  const deps = { isSecure: true }
  const [, set] = sessionCookie(deps, head('gateway.example.com'), 'a-token')
  t.match(set, /^__Host-tollgate=a-token; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax; Secure$/)
  t.equal(sessionToken(deps, head('gateway.example.com', 'a=b; __Host-tollgate=a-token')), 'a-token')
  t.equal(
    sessionToken(deps, head('gateway.example.com', 'tollgate-dev=planted')),
    null,
    'a name that a page of the network can set opens nothing',
  )
})

t.test('plain HTTP gives a session on the machine of the service alone', async (t) => {
  const deps = { isSecure: false }
  for (const host of ['localhost:8080', '127.0.0.1:8080', '[::1]:8080'])
    t.match(sessionCookie(deps, head(host), 'a-token')[1], /^tollgate-dev=a-token; .*SameSite=Lax$/)
  for (const host of ['gateway.example.com', 'localhost.example.com', '192.0.2.1:8080'])
    t.throws(() => sessionCookie(deps, head(host), 'a-token'), { message: /needs HTTPS/ })
})
