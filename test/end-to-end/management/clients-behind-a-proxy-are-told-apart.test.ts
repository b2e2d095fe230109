/** Clients behind one proxy: sign-ins, keys that are not valid, and the list of sessions name each by its own address. */
import t from 'tap'
import { generateToken, hashToken } from '../../../src/core/keys/bearer-token.ts'
import { borrowService } from '../../support/lend-services.ts'
import { MANAGE } from '../../support/manage.ts'
import { testConfig } from '../../support/service.ts'

const ATTEMPTS = 30
const config = testConfig(
  { fast: { simulate: 'tokens=1' } },
  'server: { trusted_proxies: [127.0.0.1], per_address: { unauthenticated_per_minute: 100 } }',
)

t.test('behind a proxy', async (t) => {
  const { baseUrl, database } = await borrowService(t, config)
  const send = (path: string, from: string, body: object) =>
    fetch(`${baseUrl}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: baseUrl, 'x-forwarded-for': from },
      body: JSON.stringify(body),
    })

  await t.test('a client is throttled by its own address, whatever it claims', async (t) => {
    const signIn = async (at: number, from: string) => {
      const email = `nobody-${process.pid}-${at}@example.com`
      return (await send(`${MANAGE}/sign-in/password`, from, { email, password: 'wrong-password' })).status
    }
    const statuses: number[] = []
    for (let at = 0; at < ATTEMPTS + 2; at++)
      statuses.push(await signIn(at, `198.51.100.${at}, 203.0.113.40`))
    t.same(statuses.slice(0, ATTEMPTS), Array(ATTEMPTS).fill(401))
    t.same(statuses.slice(ATTEMPTS), [429, 429], 'a forged hop before its own makes it no other client')
    t.equal(await signIn(900, '203.0.113.41'), 401, 'the next client of the same proxy is not')
  })

  await t.test('so is one that sends keys that are not valid', async (t) => {
    const call = async (from: string, digit: string) => {
      const response = await fetch(`${baseUrl}/v1/models`, {
        headers: { authorization: `Bearer sk-tollgate-${digit.repeat(64)}`, 'x-forwarded-for': from },
      })
      return response.status
    }
    const statuses: number[] = []
    // Each of two gateway processes at most counts by itself.
    for (let at = 0; at < 240 && statuses.at(-1) !== 429; at++)
      statuses.push(await call(`198.51.100.${at}, 203.0.113.50`, 'a'))
    t.equal(statuses.at(-1), 429)
    t.ok(statuses.length > 100)
    t.equal(await call('203.0.113.51', 'b'), 401)
  })

  await t.test('a session is listed with the address of the person', async (t) => {
    const email = `ada-${process.pid}-proxied@example.com`
    const user = await database.users.create({ email, name: 'Ada', credit: 0n })
    const token = generateToken()
    await database.sessions.createLink({ tokenHash: hashToken(token), userId: user.id, minutes: 5 })
    const signedIn = await send(`${MANAGE}/sign-in/link`, '198.51.100.1, 203.0.113.60', { token })
    t.equal(signedIn.status, 200)
    const cookie = signedIn.headers.getSetCookie()[0]!.split(';')[0]!
    const listed = await fetch(`${baseUrl}${MANAGE}/me/sessions`, { headers: { cookie } })
    t.match(await listed.json(), { data: [{ address: '203.0.113.60' }] })

    // Each of two gateway processes at most counts by itself.
    const statuses = new Set<number>()
    for (let at = 0; at < 210; at++)
      for (const path of ['/healthz', '/files/images/none.png?signature=x', `${MANAGE}/me/sessions`]) {
        const headers = { cookie, 'x-forwarded-for': '203.0.113.61' }
        const response = await fetch(baseUrl + path, { headers })
        await response.arrayBuffer()
        statuses.add(response.status)
      }
    t.same(
      [...statuses],
      [200, 403],
      'many requests with a session, a link or none that is needed are no bad keys',
    )
  })
})
