/** Management: sign-in, the session cookie, spend per day, and reports of imports. */
import type { RequestListener } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { Secret, TOTP } from 'otpauth'
import t from 'tap'
import { runwayDays, spendRate } from '../../../pipelines/management/calls/usage.ts'
import { makeReport } from '../../../pipelines/management/knowledge/report.ts'
import { oidcOperations } from '../../../pipelines/management/people/oidc.ts'
import { profileOperations } from '../../../pipelines/management/people/profile.ts'
import { sessionOperations } from '../../../pipelines/management/people/sessions.ts'
import { signInOperations } from '../../../pipelines/management/people/sign-in.ts'
import { userOperations } from '../../../pipelines/management/people/users.ts'
import { printSessionCookie, readSessionToken } from '../../../pipelines/management/session.ts'
import {
  addIdentity,
  beginIdentity,
  confirmByPassword,
  confirmTotp,
  endOtherSessions,
  endSession,
  enrolTotp,
  listSessions,
  removeIdentity,
  removeTotp,
  setPassword,
  showSecurity,
  updateProfile,
} from '../../../schemas/management/people/profile.ts'
import { showSession } from '../../../schemas/management/people/sessions.ts'
import {
  beginOidcSignIn,
  signInByOidc,
  signInByPassword,
  signInByTotp,
  signUp,
} from '../../../schemas/management/people/sign-in.ts'
import {
  createInvitation,
  inviteMember,
  listMemberInvitations,
} from '../../../schemas/management/people/users.ts'
import { parseCredits, printCredits } from '../../../schemas/money.ts'
import { generateToken, hashToken } from '../../../src/core/keys/bearer-token.ts'
import { openIdentity } from '../../../src/identity/identity.ts'
import { startDatabase } from '../../src/postgres/support.ts'
import { sendJson, serveHttp } from '../../support/http-server.ts'
import { BrowserSession, CONFIG } from './browser-session.ts'
import { startProvider } from './identity-provider.ts'

t.test('sign in with password and code', async (t) => {
  // Users sign up, sign in with a password and a one-time code, and are refused otherwise; in a real PostgreSQL.
  const { database, sql, openAnother } = await startDatabase(t)
  const ACTS = [...sessionOperations, ...signInOperations, ...profileOperations]
  const PASSWORD = 'correct horse battery'
  const ADA = { email: 'Ada@Example.com', password: PASSWORD }
  const MS_PER_PERIOD = 30_000

  const browser = (address = '192.0.2.1') => new BrowserSession(database, CONFIG as never, address)
  const codeAt = (secret: string, timestamp: number) =>
    new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp })
  const refusal = (run: Promise<unknown>) =>
    run.then(
      () => 'done',
      (error) => `${error.status} ${error.code} ${error.message}`,
    )

  t.before(async () => {
    await browser().run(ACTS, signUp, { ...ADA, name: 'Ada' })
  })

  t.test('a user who signed up has an account with the trial credit and signs in', async (t) => {
    const ada = browser()
    const { session, ticket } = await ada.run(ACTS, signInByPassword, { ...ADA, email: ' ADA@example.COM ' })
    t.equal(ticket, null)
    t.match(session, { user: { email: 'ada@example.com', name: 'Ada' }, accounts: [{ role: 'owner' }] })
    const { wallet } = await database.accounts.show(session!.user.account_id)
    t.equal(wallet.balance, CONFIG.trial_credit)
    const [{ stored }] = await sql<
      [{ stored: string }]
    >`SELECT string_agg(to_jsonb(p)::text, '') AS stored FROM passwords AS p`
    t.match(stored, /\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
    const [{ audited }] = await sql<[{ audited: string }]>`
    SELECT string_agg(to_jsonb(a)::text, '') AS audited FROM audit_entries AS a`
    t.match(audited, /password\.set/)
    t.notMatch(audited, /argon2/)
  })

  t.test('no answer tells whether an email exists', async (t) => {
    const unknown = { email: 'nobody@example.com', password: PASSWORD }
    const wrong = { ...ADA, password: 'another password' }
    t.equal(
      await refusal(browser().run(ACTS, signInByPassword, unknown)),
      await refusal(browser().run(ACTS, signInByPassword, wrong)),
    )
    t.match(await refusal(browser().run(ACTS, signInByPassword, unknown)), '401 sign_in_failed')
    const again = { name: 'Eve', password: 'a password of Eve' }
    t.same(await browser().run(ACTS, signUp, { ...again, email: 'ada@example.com' }), {
      email: 'ada@example.com',
    })
    t.same(await browser().run(ACTS, signUp, { ...again, email: 'eve@example.com' }), {
      email: 'eve@example.com',
    })
    t.match(
      await refusal(browser().run(ACTS, signInByPassword, { email: ADA.email, password: again.password })),
      '401',
      'the user who was there keeps their password',
    )
  })

  t.test('an email that does not exist costs a password hash as well', async (t) => {
    const cpuOf = async (attempt: object) => {
      const before = process.cpuUsage()
      for (let count = 0; count < 5; count += 1)
        await refusal(browser('192.0.2.9').run(ACTS, signInByPassword, attempt))
      const { user, system } = process.cpuUsage(before)
      return user + system
    }
    const password = 'another password'
    const wrong = await cpuOf({ ...ADA, password })
    const unknown = await cpuOf({ email: 'nobody@example.com', password })
    t.ok(unknown > wrong / 2, `${unknown} us of CPU for an unknown email, ${wrong} us for a wrong password`)
  })

  t.test('a password that may not be chosen is refused with a reason', async (t) => {
    const sign = (password: string) =>
      refusal(browser('192.0.2.2').run(ACTS, signUp, { email: 'bob@example.com', name: 'Bob', password }))
    t.match(await sign('short'), '400 invalid_request The password has 5 characters')
    t.match(await sign('1q2w3e4r5t'), 'one of the commonest')
  })

  t.test('ten attempts for an account over all processes, whether a user has it or not', async (t) => {
    const others = [database, await openAnother()]
    for (const email of ['carol@example.com', 'nobody-else@example.com']) {
      if (email.startsWith('carol'))
        await browser('192.0.2.3').run(ACTS, signUp, { email, name: 'Carol', password: PASSWORD })
      const answers = await Promise.all(
        Array.from({ length: 24 }, (_, index) => {
          const someone = new BrowserSession(others[index % 2]!, CONFIG as never, `198.51.100.${index}`)
          return refusal(someone.run(ACTS, signInByPassword, { email, password: `wrong password ${index}` }))
        }),
      )
      t.equal(answers.filter((answer) => answer.startsWith('401')).length, 10, email)
      t.equal(answers.filter((answer) => answer.startsWith('429 rate_limit_exceeded')).length, 14, email)
      t.match(
        await refusal(browser('192.0.2.4').run(ACTS, signInByPassword, { email, password: PASSWORD })),
        '429',
        'the right password as well',
      )
    }
  })

  t.test('thirty attempts from an address; those that succeed do not count', async (t) => {
    const someone = browser('192.0.2.5')
    for (let index = 0; index < 3; index++) await someone.run(ACTS, signInByPassword, ADA)
    const answers: string[] = []
    for (let index = 0; index < 32; index++)
      answers.push(
        await refusal(
          someone.run(ACTS, signInByPassword, { email: `person${index}@example.com`, password: PASSWORD }),
        ),
      )
    t.equal(answers.filter((answer) => answer.startsWith('401')).length, 30)
    t.match(answers[31], '429')
  })

  t.test('an attempt that is turned away unchecked does not count', async (t) => {
    await sql`DELETE FROM sign_in_attempts`
    const identity = openIdentity()
    await identity.passwords.verify(null, PASSWORD)
    let isAnswered = false
    const keepBusy = async () => {
      while (!isAnswered) await identity.passwords.verify(null, PASSWORD).catch(() => sleep(1))
    }
    const busy = Array.from({ length: 110 }, keepBusy)
    const someone = new BrowserSession(database, CONFIG as never, '192.0.2.7', identity)
    t.match(await refusal(someone.run(ACTS, signInByPassword, ADA)), '503 service_unavailable')
    const newcomer = { email: 'newcomer@example.com', name: 'Newcomer', password: PASSWORD }
    t.match(await refusal(someone.run(ACTS, signUp, newcomer)), '503 service_unavailable')
    isAnswered = true
    await Promise.all(busy)
    t.same([...(await sql`SELECT FROM sign_in_attempts`)], [])
  })

  t.test('any number of people behind one address take up their invitations', async (t) => {
    const takeUp = async (email: string) => {
      const invitation = generateToken()
      await database.invitations.create({
        tokenHash: hashToken(invitation),
        email,
        accountId: null,
        role: null,
        installationRole: null,
      })
      return refusal(browser('192.0.2.6').run(ACTS, signUp, { name: 'New', password: PASSWORD, invitation }))
    }
    // As many as may be checked at a time; then further ones.
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, index) => takeUp(`new${index}@example.com`)),
    )
    answers.push(await takeUp('another@example.com'))
    t.same([...new Set(answers)], ['done'])
  })

  t.test('the token changes at sign-in and confirmation; other sessions end with the password', async (t) => {
    const [laptop, phone] = [browser(), browser()]
    await laptop.run(ACTS, signInByPassword, ADA)
    const first = laptop.token
    await laptop.run(ACTS, signInByPassword, ADA)
    t.not(laptop.token, first)
    const fixed = browser()
    fixed.token = first
    t.match(await refusal(fixed.run(ACTS, showSession)), '401 not_signed_in')

    await phone.run(ACTS, signInByPassword, ADA)
    await sql`UPDATE sessions SET confirmed_at = now() - interval '11 minutes'`
    t.match(
      await refusal(laptop.run(ACTS, setPassword, { password: 'one more password' })),
      '403 reauthentication_required',
    )
    t.match(
      await refusal(laptop.run(ACTS, confirmByPassword, { password: 'wrong password' })),
      '403 sign_in_failed',
    )
    const before = laptop.token
    const { csrf_token } = await laptop.run(ACTS, showSession)
    const confirmed = await laptop.run(ACTS, confirmByPassword, { password: PASSWORD })
    t.not(laptop.token, before)
    t.not(confirmed.csrf_token, csrf_token)
    await laptop.run(ACTS, setPassword, { password: 'one more password' })
    t.match(await laptop.run(ACTS, showSession), { user: { name: 'Ada' } })
    t.match(await refusal(phone.run(ACTS, showSession)), '401 not_signed_in')
    await laptop.run(ACTS, setPassword, { password: PASSWORD })
  })

  t.test('sessions are listed and ended by their user alone', async (t) => {
    await sql`DELETE FROM sign_in_attempts`
    await sql`DELETE FROM sessions`
    const [laptop, phone, eve] = [browser(), browser(), browser()]
    await laptop.run(ACTS, signInByPassword, ADA)
    await phone.run(ACTS, signInByPassword, ADA)
    await eve.run(ACTS, signInByPassword, { email: 'eve@example.com', password: 'a password of Eve' })
    const { data } = await laptop.run(ACTS, listSessions)
    t.same(
      data.map(({ is_current }) => is_current),
      [false, true],
    )
    const id = data[0]!.id
    t.match(await refusal(eve.run(ACTS, endSession, { id })), '404 not_found')
    t.match(await phone.run(ACTS, showSession), { id })
    await laptop.run(ACTS, endSession, { id })
    t.match(await refusal(phone.run(ACTS, showSession)), '401')
    await phone.run(ACTS, signInByPassword, ADA)
    t.same(await laptop.run(ACTS, endOtherSessions), { ended: 1 })
    t.match(await eve.run(ACTS, showSession), { user: { email: 'eve@example.com' } })
    t.match(await laptop.run(ACTS, updateProfile, { name: 'Ada L.', locale: 'zh' }), {
      name: 'Ada L.',
      locale: 'zh',
    })
  })

  t.test(
    'one-time codes: confirmed by a first one, none taken twice, recovery codes once each',
    async (t) => {
      await sql`DELETE FROM sign_in_attempts`
      const ada = browser()
      await ada.run(ACTS, signInByPassword, ADA)
      const { secret, uri } = await ada.run(ACTS, enrolTotp)
      t.match(uri, /^otpauth:\/\/totp\/Tollgate:ada%40example\.com\?/)
      const [{ sealed }] = await sql<[{ sealed: Buffer }]>`SELECT sealed_secret AS sealed FROM totps`
      t.notOk(sealed.includes(secret), 'sealed at rest')
      t.match((await browser().run(ACTS, signInByPassword, ADA)).session, { user: {} }, 'not in force yet')
      const start = Math.floor(Date.now() / MS_PER_PERIOD) * MS_PER_PERIOD
      ada.now = () => start
      t.match(
        await refusal(ada.run(ACTS, confirmTotp, { code: codeAt(secret, start - 10 * MS_PER_PERIOD) })),
        '401 sign_in_failed',
      )
      const { recovery_codes: codes } = await ada.run(ACTS, confirmTotp, { code: codeAt(secret, start) })
      t.equal(new Set(codes).size, 10)

      const signIn = async (code: string, at = start) => {
        const someone = browser()
        someone.now = () => at
        const { session, ticket } = await someone.run(ACTS, signInByPassword, ADA)
        t.equal(session, null)
        t.equal(someone.token, null)
        return refusal(someone.run(ACTS, signInByTotp, { ticket: ticket!, code }))
      }
      t.match(await signIn(codeAt(secret, start)), '401 sign_in_failed', 'the code that confirmed')
      const next = start + MS_PER_PERIOD
      t.equal(await signIn(codeAt(secret, next)), 'done', 'a clock that is ahead')
      t.match(await signIn(codeAt(secret, next), next), '401 sign_in_failed', 'twice')
      t.equal(await signIn(codes[0]!.toUpperCase().replaceAll('-', ' ')), 'done')
      t.match(await signIn(codes[0]!), '401 sign_in_failed')
      t.match(await ada.run(ACTS, showSecurity), { recovery_codes: 9, totp_confirmed_at: String })

      const { ticket } = await browser().run(ACTS, signInByPassword, ADA)
      const guesses = await Promise.all(
        Array.from({ length: 12 }, (_, index) =>
          refusal(browser(`203.0.113.${index}`).run(ACTS, signInByTotp, { ticket, code: '000000' })),
        ),
      )
      t.ok(
        guesses.some((answer) => answer.startsWith('429')),
        'guesses are limited',
      )
      await ada.run(ACTS, removeTotp)
      t.match((await browser().run(ACTS, signInByPassword, ADA)).session, { user: {} })
    },
  )
})

t.test('sign in at a provider', async (t) => {
  // Sign-in by OpenID Connect, at an identity provider that others wrote; in a real PostgreSQL.
  const HOUR_MS = 60 * 60 * 1000
  const ACTS = [
    ...sessionOperations,
    ...signInOperations,
    ...oidcOperations,
    ...profileOperations,
    ...userOperations,
  ]
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
    await t.rejects(signIn(browser('open'), 'ada'), {
      code: 'sign_in_failed',
      message: /signs in another way/,
    })
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
    await t.rejects(operator.run(ACTS, addIdentity, { id: 'corp', ticket, query }), {
      code: 'sign_in_failed',
    })
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
})

t.test('session cookie is the browsers alone', async (t) => {
  // The cookie of a session: over HTTPS it is bound to the host and crosses no network in the clear.
  const head =
    (host: string, cookie = '') =>
    (name: string) =>
      ({ host, cookie })[name] ?? ''

  t.test('over HTTPS the cookie belongs to this host alone', async (t) => {
    const transport = { isSecure: true }
    const [, set] = printSessionCookie(transport, head('gateway.example.com'), 'a-token')
    t.match(set, /^__Host-tollgate=a-token; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax; Secure$/)
    t.equal(
      readSessionToken(transport, head('gateway.example.com', 'a=b; __Host-tollgate=a-token')),
      'a-token',
    )
    t.equal(
      readSessionToken(transport, head('gateway.example.com', 'tollgate-dev=planted')),
      null,
      'a name that a page of the network can set opens nothing',
    )
  })

  t.test('plain HTTP gives a session on the machine of the service alone', async (t) => {
    const transport = { isSecure: false }
    for (const host of ['localhost:8080', '127.0.0.1:8080', '[::1]:8080'])
      t.match(
        printSessionCookie(transport, head(host), 'a-token')[1],
        /^tollgate-dev=a-token; .*SameSite=Lax$/,
      )
    for (const host of ['gateway.example.com', 'localhost.example.com', '192.0.2.1:8080'])
      t.throws(() => printSessionCookie(transport, head(host), 'a-token'), { message: /needs HTTPS/ })
  })
})

t.test('spend per day has the days it says', async (t) => {
  // Home says what an account spends per day, and how long its balance lasts, of the days that it names.
  const TODAY = '2026-03-15'
  const BALANCE = parseCredits('100')

  const rateOf = (costs: Readonly<Record<string, string>>) => {
    const rows = Object.entries(costs).map(([day, cost]) => ({ day, cost: parseCredits(cost) }))
    const rate = spendRate(rows, TODAY)
    return { perDay: printCredits(rate.perDay), days: rate.days, lasts: runwayDays(BALANCE, rate) }
  }

  t.test('spend per day', async (t) => {
    t.same(rateOf({}), { perDay: '0', days: 0, lasts: null }, 'nothing was spent')
    t.same(rateOf({ '2026-03-15': '4' }), { perDay: '4', days: 0, lasts: 25 }, 'the first day counts so far')
    t.same(
      rateOf({ '2026-03-14': '10', '2026-03-15': '4' }),
      { perDay: '10', days: 1, lasts: 10 },
      'on the second day the first is not divided by seven, and today, which is not over, is left out',
    )
    t.same(rateOf({ '2026-03-12': '6', '2026-03-14': '3' }), { perDay: '3', days: 3, lasts: 33.3 })
    t.same(rateOf({ '2026-03-08': '7', '2026-03-14': '7' }), { perDay: '2', days: 7, lasts: 50 })
    t.same(
      rateOf({ '2026-02-20': '70', '2026-03-14': '7' }),
      { perDay: '1', days: 7, lasts: 100 },
      'days without a call count',
    )
    t.same(
      rateOf({ '2026-02-20': '70', '2026-03-15': '5' }),
      { perDay: '5', days: 0, lasts: 20 },
      'after a week without a cost today counts',
    )
    t.same(
      rateOf({ '2026-03-10': '0', '2026-03-14': '5', '2026-03-15': '0' }),
      { perDay: '5', days: 1, lasts: 20 },
      'calls that cost nothing do not begin the days',
    )
  })
})

t.test('import report is bounded', async (t) => {
  t.test('an import that finds no file of most pages names a thousand of them, and counts all', async (t) => {
    const gone = Array.from({ length: 20_000 }, (_, i) => `notes/${i}.md`)
    const counts = { added: 0, changed: 0, unchanged: 1, pages: 20_001 }
    const none = { count: 0, first: [] }
    const report = makeReport(
      { ...counts, gone, ignoredFields: new Map() },
      { unresolved: none, sameTitle: none },
      false,
    )
    t.equal(report.gone, 20_000)
    t.same(report.gone_paths, gone.slice(0, 1_000))
  })
})
