/** Users sign up, sign in with a password and a one-time code, and are refused otherwise; in a real PostgreSQL. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Secret, TOTP } from 'otpauth'
import t from 'tap'
import { profileActs } from '../../../pipelines/management/people/profile.ts'
import { sessionActs } from '../../../pipelines/management/people/sessions.ts'
import { signInActs } from '../../../pipelines/management/people/sign-in.ts'
import {
  confirmByPassword,
  confirmTotp,
  endOtherSessions,
  endSession,
  enrolTotp,
  listSessions,
  removeTotp,
  setPassword,
  showSecurity,
  updateProfile,
} from '../../../schemas/management/people/profile.ts'
import { showSession } from '../../../schemas/management/people/sessions.ts'
import { signInByPassword, signInByTotp, signUp } from '../../../schemas/management/people/sign-in.ts'
import { generateToken, tokenHash } from '../../../src/core/keys/bearer-token.ts'
import { openIdentity } from '../../../src/identity/identity.ts'
import { startDatabase } from '../../src/postgres/support.ts'
import { BrowserSession, CONFIG } from './browser-session.ts'

const { database, sql, openAnother } = await startDatabase(t)
const ACTS = [...sessionActs, ...signInActs, ...profileActs]
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
      tokenHash: tokenHash(invitation),
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

t.test('one-time codes: confirmed by a first one, none taken twice, recovery codes once each', async (t) => {
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
})
