/** Sign-in by OpenID Connect, at an identity provider that others wrote; in a real PostgreSQL. */
import type { RequestListener } from 'node:http'
import t from 'tap'
import { oidcActs } from '../../../pipelines/management/people/oidc.ts'
import { profileActs } from '../../../pipelines/management/people/profile.ts'
import { sessionActs } from '../../../pipelines/management/people/sessions.ts'
import { signInActs } from '../../../pipelines/management/people/sign-in.ts'
import { userActs } from '../../../pipelines/management/people/users.ts'
import {
  addIdentity,
  beginIdentity,
  removeIdentity,
  showSecurity,
} from '../../../schemas/management/people/profile.ts'
import {
  beginOidcSignIn,
  signInByOidc,
  signInByPassword,
  signUp,
} from '../../../schemas/management/people/sign-in.ts'
import {
  createInvitation,
  inviteMember,
  listMemberInvitations,
} from '../../../schemas/management/people/users.ts'
import { openIdentity } from '../../../src/identity/identity.ts'
import { startDatabase } from '../../src/postgres/support.ts'
import { sendJson, serveHttp } from '../../support/http-server.ts'
import { BrowserSession, CONFIG } from './browser-session.ts'
import { startProvider } from './identity-provider.ts'

const HOUR_MS = 60 * 60 * 1000
const ACTS = [...sessionActs, ...signInActs, ...oidcActs, ...profileActs, ...userActs]
const person = (name: string, isVerified = true) => ({
  email: `${name}@Corp.example`,
  email_verified: isVerified,
  name: name.toUpperCase(),
})
const provider = await startProvider(t, {
  ada: person('ada'),
  bob: person('bob'),
  carol: person('carol'),
  dan: person('dan'),
  eve: { ...person('eve'), name: `E\0v\ne ${'x'.repeat(95)}\u{1f600}` },
  mallory: person('ada', false),
})
provider.redirectTo('http://localhost:8080/console/sign-in/oidc/corp')
const { database, sql } = await startDatabase(t)
const identity = openIdentity()
const withProvider = { ...CONFIG, sign_in: { oidc: [provider.config] } }

const browser = (signup: 'open' | 'invite' | 'off' = 'invite') =>
  new BrowserSession(database, { ...withProvider, signup } as never, '192.0.2.1', identity)

async function signIn(someone: BrowserSession, subject: string, more: object = {}) {
  const { ticket, url } = await someone.run(ACTS, beginOidcSignIn, { id: 'corp', ...more })
  const query = await provider.visit(url, subject)
  return someone.run(ACTS, signInByOidc, { id: 'corp', ticket, query })
}

const operator = browser()
t.before(async () => {
  const user = await database.users.create({
    email: 'operator@localhost',
    name: 'Operator',
    installationRole: 'operator',
    credit: 0n,
  })
  await database.signIn.setPassword(user.id, await identity.passwords.hash('a long passphrase'))
  await operator.run(ACTS, signInByPassword, { email: 'operator@localhost', password: 'a long passphrase' })
})

const tokenIn = (url: string) => new URL(url).hash.replace('#invitation=', '')

t.test('where sign-up is open, a verified email becomes a user, found again by the subject', async (t) => {
  const session = await signIn(browser('open'), 'bob')
  t.match(session, { user: { email: 'bob@corp.example', name: 'BOB' }, accounts: [{ role: 'owner' }] })
  const again = await signIn(browser('off'), 'bob')
  t.equal(again.user.id, session.user.id)
})

t.test('a name that no user may have is cut to one', async (t) => {
  const { user } = await signIn(browser('open'), 'eve')
  t.equal(user.name, `Eve ${'x'.repeat(95)}`)
})

t.test('state, nonce, code and ticket are checked, and work once', async (t) => {
  const failed = { status: 401, code: 'sign_in_failed' }
  const someone = browser('open')
  const { ticket, url } = await someone.run(ACTS, beginOidcSignIn, { id: 'corp' })
  t.match(url, /code_challenge_method=S256/)
  const query = await provider.visit(url, 'bob')
  const forged = new URLSearchParams(query)
  forged.set('state', 'another')
  await t.rejects(someone.run(ACTS, signInByOidc, { id: 'corp', ticket, query: String(forged) }), failed)
  await t.rejects(
    someone.run(ACTS, signInByOidc, { id: 'corp', ticket, query }),
    failed,
    'the ticket is used up',
  )

  const other = await someone.run(ACTS, beginOidcSignIn, { id: 'corp' })
  await t.rejects(
    someone.run(ACTS, signInByOidc, { id: 'corp', ticket: other.ticket, query }),
    failed,
    'the answer to another request',
  )
  t.equal(someone.token, null)
  await t.rejects(someone.run(ACTS, beginOidcSignIn, { id: 'nowhere' }), { code: 'not_found' })
})

const attempts = async () => Number((await sql`SELECT count(*) FROM sign_in_attempts`)[0]!.count)

t.test('a provider that is away in the second step fails no attempt to sign in', async (t) => {
  await sql`DELETE FROM sign_in_attempts`
  const faults: Record<string, RequestListener> = {
    'does not answer': (request) => request.socket.destroy(),
    'answers 503': (_, response) => response.writeHead(503).end(),
    'ends in mid-answer': (request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '99' })
      response.write('{', () => request.socket.destroy())
    },
  }
  const away = { status: 503, code: 'service_unavailable', message: /^Corp does not answer: try again/ }
  for (const [fault, listener] of Object.entries(faults)) {
    const known = browser('open')
    // A process that has not read the provider's metadata yet.
    const fresh = new BrowserSession(database, withProvider as never, '192.0.2.1', openIdentity())
    for (const someone of [known, fresh]) {
      const { ticket, url } = await known.run(ACTS, beginOidcSignIn, { id: 'corp' })
      const query = await provider.visit(url, 'bob')
      provider.answerBy(listener)
      await t.rejects(someone.run(ACTS, signInByOidc, { id: 'corp', ticket, query }), away, fault)
      provider.answerBy(null)
    }
  }
  t.equal(await attempts(), 0)
  const { ticket } = await browser('open').run(ACTS, beginOidcSignIn, { id: 'corp' })
  const refused = browser('open').run(ACTS, signInByOidc, {
    id: 'corp',
    ticket,
    query: 'error=access_denied',
  })
  await t.rejects(refused, { code: 'sign_in_failed' })
  t.equal(await attempts(), 1, 'a provider that refuses does')
})

t.test('by invitation alone, for its email, once, with the role that it gives', async (t) => {
  await t.rejects(signIn(browser(), 'carol'), { status: 403, code: 'permission_denied' })
  const { account } = await database.accounts.create({ name: 'Acme', kind: 'organization', credit: 0n })
  const given = { account_id: account.id, email: 'Carol@corp.example', role: 'admin' }
  const { url } = await operator.run(ACTS, inviteMember, given)
  const invitation = tokenIn(url!)
  await t.rejects(signIn(browser(), 'dan', { invitation }), { code: 'sign_in_failed' }, 'another email')
  const session = await signIn(browser(), 'carol', { invitation })
  t.match(session.accounts, [{ role: 'owner' }, { account_id: account.id, role: 'admin' }])
  await t.rejects(signIn(browser(), 'dan', { invitation }), { code: 'invalid_request' }, 'used')
  const { data } = await operator.run(ACTS, listMemberInvitations, { account_id: account.id })
  t.match(data, [{ email: 'carol@corp.example', used_at: String, role: 'admin' }])
})

t.test('an email alone connects only a user without another way to sign in', async (t) => {
  await browser('open').run(ACTS, signUp, {
    email: 'ada@corp.example',
    name: 'Not Ada',
    password: 'chosen before Ada came',
  })
  await t.rejects(signIn(browser('open'), 'ada'), { code: 'sign_in_failed', message: /signs in another way/ })
  await t.rejects(signIn(browser('open'), 'mallory'), { message: /does not confirm your email/ })
  const dan = await database.users.create({ email: 'dan@corp.example', name: 'Dan', credit: 0n })
  t.equal((await signIn(browser(), 'dan')).user.id, dan.id, 'created by an operator')
  await database.users.update(dan.id, { enabled: false })
  await t.rejects(signIn(browser(), 'dan'), { code: 'sign_in_failed', message: /disabled/ })
})

t.test('a user connects a provider to themselves, and keeps their last way to sign in', async (t) => {
  const ada = browser('open')
  await ada.run(ACTS, signInByPassword, { email: 'ada@corp.example', password: 'chosen before Ada came' })
  const { ticket, url } = await ada.run(ACTS, beginIdentity, { id: 'corp' })
  const query = await provider.visit(url, 'ada')
  await t.rejects(operator.run(ACTS, addIdentity, { id: 'corp', ticket, query }), { code: 'sign_in_failed' })
  await ada.run(ACTS, addIdentity, { id: 'corp', ticket, query })
  t.match(await ada.run(ACTS, showSecurity), { providers: [{ id: 'corp', name: 'Corp' }] })
  t.match(await signIn(browser(), 'ada'), { user: { name: 'Not Ada' } })
  await ada.run(ACTS, removeIdentity, { id: 'corp' })
  const bob = browser()
  await signIn(bob, 'bob')
  await t.rejects(bob.run(ACTS, removeIdentity, { id: 'corp' }), { code: 'conflict', message: /last way/ })
})

t.test('an operator is invited by an operator, who has confirmed it is them', async (t) => {
  const invited = { email: 'auditor@corp.example', installation_role: 'auditor' }
  const { url } = await operator.run(ACTS, createInvitation, invited)
  const someone = browser()
  await someone.run(ACTS, signUp, {
    invitation: tokenIn(url!),
    name: 'Auditor',
    password: 'a long passphrase',
  })
  const { session } = await someone.run(ACTS, signInByPassword, {
    email: 'auditor@corp.example',
    password: 'a long passphrase',
  })
  t.match(session, { user: { installation_role: 'auditor' } })
  await t.rejects(someone.run(ACTS, createInvitation, invited), { code: 'permission_denied' })
  const later = browser()
  later.token = operator.token
  later.now = () => Date.now() + 11 * 60_000
  await t.rejects(later.run(ACTS, createInvitation, invited), { code: 'reauthentication_required' })
})

t.test("a clock that is set back keeps no provider's metadata longer", async (t) => {
  let asked = 0
  const issuer = await serveHttp(t, (_, response) => {
    asked += 1
    sendJson(response, 200, { issuer, authorization_endpoint: `${issuer}/auth` })
  })
  const { oidc } = openIdentity()
  const begin = () => oidc.begin({ ...provider.config, issuer }, 'http://localhost:8080/back')
  await begin()
  await begin()
  t.equal(asked, 1)
  const [wall, elapsed] = [Date.now(), performance.now()]
  t.intercept(Date, 'now', { value: () => wall - HOUR_MS })
  t.intercept(performance, 'now', { value: () => elapsed + HOUR_MS })
  await begin()
  t.equal(asked, 2)
})
