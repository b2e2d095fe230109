/** `tollgate user …`, by the same functions as the management API, on a real PostgreSQL. */
import t from 'tap'
import { sessionActs } from '../../../pipelines/management/people/sessions.ts'
import { signInActs } from '../../../pipelines/management/people/sign-in.ts'
import { showSession, signInByLink } from '../../../schemas/management/people/sessions.ts'
import {
  acceptInvitation,
  lookUpInvitation,
  signInByPassword,
  signUp,
} from '../../../schemas/management/people/sign-in.ts'
import { BrowserSession, CONFIG } from '../../pipelines/management/browser-session.ts'
import { until } from '../../support/eventually.ts'
import { startDatabase } from '../postgres/support.ts'
import { commandsOn, wiringOn } from './support.ts'

const { database, sql } = await startDatabase(t)
const publicUrl = async () => 'https://gateway.example'
const { json, text, refused } = commandsOn(wiringOn(database, { trial_credit: '5' }, { publicUrl }))
const ACTS = [...sessionActs, ...signInActs]
const browser = () => new BrowserSession(database, { ...CONFIG, signup: 'invite' } as never)
const PASSWORD = 'a long passphrase'

t.test('a created user signs in by a link, once; a disabled one does not', async (t) => {
  const ada = await json(
    'user',
    'create',
    '--email',
    'Ada@Example.com',
    '--name',
    'Ada',
    '--role',
    'operator',
  )
  t.match(ada, { email: 'ada@example.com', installation_role: 'operator', enabled: true, signed_in_at: null })
  t.match(
    await refused('user', 'create', '--email', 'ada@example.com', '--name', 'Eve'),
    'a user with this email',
  )
  t.equal((await database.accounts.show(ada.account_id)).wallet.balance, 500_000_000n)
  const { url, minutes } = await json('user', 'link', ada.id)
  t.equal(minutes, 15)
  const [, token] = /^https:\/\/gateway\.example\/console\/sign-in#link=([\w-]{43})$/.exec(url) ?? []
  const session = browser()
  t.match(await session.run(ACTS, signInByLink, { token }), { user: { id: ada.id } })
  await t.rejects(browser().run(ACTS, signInByLink, { token }), { code: 'invalid_request' })

  t.match(await refused('user', 'disable', ada.id), 'last operator')
  t.match(await refused('user', 'role', ada.id, '--role', 'none'), 'last operator')
  const bob = await json('user', 'create', '--email', 'bob@example.com', '--name', 'Bob')
  await json('user', 'role', bob.id, '--role', 'operator')
  const late = await json('user', 'link', ada.id)
  t.match(await json('user', 'disable', ada.id), { enabled: false })
  await t.rejects(session.run(ACTS, showSession), { code: 'not_signed_in' })
  await t.rejects(browser().run(ACTS, signInByLink, { token: late.url.split('=')[1] }), {
    code: 'invalid_request',
  })
  t.match(await refused('user', 'link', ada.id), 'disabled')
  await json('user', 'enable', ada.id)
  t.match(await json('user', 'list', '--search', 'ADA'), [{ id: ada.id, enabled: true }])
  t.match(await text('user', 'list'), /bob@example\.com/)
  const acts = await sql`
    SELECT action, actor FROM audit_entries WHERE subject_id = ${ada.id} AND actor = 'operator:test' ORDER BY id`
  t.same(
    acts.map(({ action }) => action),
    ['user.create', 'link.create', 'link.create', 'user.disable', 'user.enable'],
  )
})

t.test('an invitation to an organization works once, for its email, and can be refused', async (t) => {
  const { account } = await database.accounts.create({ name: 'Acme', kind: 'organization', credit: 0n })
  const invite = ['user', 'invite', '--organization', account.id, '--email']
  const { url, expires_at } = await json(...invite, 'Carol@example.com', '--as', 'admin')
  const days = (Date.parse(expires_at) - Date.now()) / 86_400_000
  t.ok(days > 6.9 && days <= 7)
  const [, token] = /^https:\/\/gateway\.example\/console\/sign-up#invitation=([\w-]{43})$/.exec(url) ?? []
  t.match(await browser().run(ACTS, lookUpInvitation, { token }), {
    email: 'carol@example.com',
    account_name: 'Acme',
    role: 'admin',
  })
  const person = { name: 'Carol', password: PASSWORD }
  await t.rejects(browser().run(ACTS, signUp, { ...person, email: 'carol@example.com' }), {
    code: 'permission_denied',
  })
  const sign = { ...person, invitation: token, email: 'mallory@example.com' }
  t.same(await browser().run(ACTS, signUp, sign), { email: 'carol@example.com' }, 'for its own email')
  await t.rejects(browser().run(ACTS, signUp, sign), { code: 'invalid_request' })
  const carol = browser()
  const { session } = await carol.run(ACTS, signInByPassword, {
    email: 'carol@example.com',
    password: PASSWORD,
  })
  t.match(session?.accounts, [{ role: 'owner' }, { name: 'Acme', role: 'admin' }])

  const other = await database.accounts.create({ name: 'Other', kind: 'organization', credit: 0n })
  const toOther = async (email: string) => {
    const { url, id } = await json('user', 'invite', '--organization', other.account.id, '--email', email)
    return { id, token: url.split('=')[1] }
  }
  const former = carol.token
  await t.rejects(carol.run(ACTS, acceptInvitation, { token: (await toOther('bob@example.com')).token }), {
    code: 'permission_denied',
  })
  const accepted = await carol.run(ACTS, acceptInvitation, {
    token: (await toOther('carol@example.com')).token,
  })
  t.match(accepted.accounts[2], { name: 'Other', role: 'member' })
  t.not(carol.token, former, 'more rights, another token')
  const { id, token: revoked } = await toOther('dan@example.com')
  await json('user', 'uninvite', id, '--organization', other.account.id)
  await t.rejects(browser().run(ACTS, lookUpInvitation, { token: revoked }), { code: 'invalid_request' })
  t.equal((await json('user', 'invitations', '--organization', other.account.id)).length, 3)
  t.same(await json('user', 'invitations'), [])
})

t.test('who becomes an operator by an invitation is one in that session alone', async (t) => {
  const email = 'erin@example.com'
  const invite = async (...more: string[]) => {
    const { url } = await json('user', 'invite', '--email', email, ...more)
    return url.split('=')[1]
  }
  await browser().run(ACTS, signUp, { name: 'Erin', password: PASSWORD, invitation: await invite() })
  const [here, elsewhere] = [browser(), browser()]
  for (const one of [here, elsewhere]) await one.run(ACTS, signInByPassword, { email, password: PASSWORD })
  await here.run(ACTS, acceptInvitation, { token: await invite('--role', 'operator') })
  t.match(await here.run(ACTS, showSession), { user: { installation_role: 'operator' } })
  await t.rejects(elsewhere.run(ACTS, showSession))
})

t.test('a change of the name does not undo what another person changes meanwhile', async (t) => {
  const { id } = await json('user', 'create', '--email', 'frank@example.com', '--name', 'Frank')
  const renamed = sql.begin(async (holding) => {
    await holding`SELECT FROM users WHERE id = ${id} FOR UPDATE`
    const renaming = database.users.update(id, { name: 'Francis' })
    await until('the change waits', async () => {
      const rows = await sql`SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND state = 'active'`
      return rows.length > 0
    })
    await holding`UPDATE users SET enabled = false WHERE id = ${id}`
    return { renaming }
  })
  t.match(await (await renamed).renaming, { name: 'Francis', enabled: false })
})
