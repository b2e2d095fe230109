/** Commands that run operations of the management API: budgets, tokens, tasks, users, webhooks. */
import { join } from 'node:path'
import t from 'tap'
import { commandCaller } from '../../../pipelines/management/caller.ts'
import { deliveryOperations } from '../../../pipelines/management/notifications/deliveries.ts'
import { findImplementation, runImplementation } from '../../../pipelines/management/operation.ts'
import { printCursor } from '../../../pipelines/management/page.ts'
import { sessionOperations } from '../../../pipelines/management/people/sessions.ts'
import { signInOperations } from '../../../pipelines/management/people/sign-in.ts'
import { listDeliveries } from '../../../schemas/management/notifications/deliveries.ts'
import { showSession, signInByLink } from '../../../schemas/management/people/sessions.ts'
import {
  acceptInvitation,
  lookUpInvitation,
  signInByPassword,
  signUp,
} from '../../../schemas/management/people/sign-in.ts'
import { hashToken } from '../../../src/core/keys/bearer-token.ts'
import { fileLinks, linkKey } from '../../../src/core/media/file-link.ts'
import { FolderStore } from '../../../src/storage/folder-store.ts'
import { BrowserSession, CONFIG } from '../../pipelines/management/browser-session.ts'
import { until } from '../../support/eventually.ts'
import { newAccount, openFresh, sharePostgres } from '../postgres/support.ts'
import { hold, settle } from '../postgres/tasks/support.ts'
import { command, commandsOn, wiringOn } from './support.ts'

const engines = await sharePostgres()

t.test('budgets are set listed and ended', async (t) => {
  // `tollgate budget …`, by the acts of the management API, on a real PostgreSQL.
  const { database } = await openFresh(t, engines)
  const wiring = wiringOn(database)
  const { json, refused } = commandsOn(wiring)

  t.test('a budget is set, replaced, listed and deleted, in the name of the operator', async (t) => {
    const account = await newAccount(database)
    const { key } = await database.keys.create({ accountId: account, kind: 'console', name: 'a key' })
    const set = (...words: string[]) => json('budget', 'set', '--account', account, ...words)
    const week = await set('--amount', '500', '--period', 'week', '--timezone', 'Europe/Berlin')
    t.match(week, { amount: '500', period: 'week', timezone: 'Europe/Berlin' })
    t.match(await set('--amount', '400', '--period', 'week'), { id: week.id, amount: '400', timezone: 'UTC' })
    const day = await set('--key', key.id, '--amount', '1.5', '--period', 'day')
    t.match(day, { key_id: key.id, amount: '1.5', period: 'day' })
    const ids = async (of: string) =>
      (await json('budget', 'list', '--account', of)).map(({ id }: { id: string }) => id).sort()
    t.same(await ids(account), [week.id, day.id].sort())
    t.same(await ids(await newAccount(database)), [])
    await json('budget', 'delete', week.id, '--yes')
    t.same(await ids(account), [day.id])
    t.match(await refused('budget', 'delete', week.id, '--yes'), /no budget/)
    const acts = await database.auditRecord.list({ accountId: account, action: 'budget', limit: 10 })
    t.ok(acts.length >= 4)
    t.ok(acts.every(({ actor }) => actor === 'operator:test'))
  })

  t.test('wrong amounts, periods, time zones and subjects are refused', async (t) => {
    const [account, stranger] = [await newAccount(database), await newAccount(database)]
    const { key } = await database.keys.create({ accountId: stranger, kind: 'console', name: 'theirs' })
    const set = ['budget', 'set', '--account', account]
    const code = async (...words: string[]) => (await command([...set, ...words], wiring)).code
    t.equal(await code('--amount', '0', '--period', 'day'), 2)
    t.equal(await code('--amount', '5', '--period', 'year'), 2)
    t.equal(await code('--period', 'day'), 2)
    t.equal(await code('--amount', '5', '--period', 'day', '--key', key.id, '--member', stranger), 2)
    const day = ['--amount', '5', '--period', 'day']
    t.match(await refused(...set, ...day, '--timezone', 'Moon/Base'), /Moon\/Base/)
    t.match(await refused(...set, ...day, '--key', key.id), new RegExp(key.id))
    t.same(await json('budget', 'list', '--account', account), [])
  })
})

t.test('management tokens are made and revoked', async (t) => {
  // `tollgate token …`, by the same functions as the management API, on a real PostgreSQL.
  const { database } = await openFresh(t, engines)
  const wiring = wiringOn(database, { trial_credit: '5' })
  const { json, text, refused } = commandsOn(wiring)

  t.test('a token of the installation is printed once, and ends when it is revoked', async (t) => {
    const made = await json(
      'token',
      'create',
      '--name',
      'reports',
      '--scopes',
      'keys,read',
      '--expires',
      '2999-01-01',
    )
    t.match(made, {
      name: 'reports',
      account_id: null,
      scopes: ['read', 'keys'],
      expires_at: '2999-01-01T00:00:00.000Z',
      token: /^tgm_[0-9a-f]{64}$/,
    })
    t.match(await database.managementTokens.find(hashToken(made.token)), { id: made.id, accountId: null })
    const listed = await json('token', 'list')
    t.match(listed, [{ id: made.id, revoked_at: null }])
    t.notOk('token' in listed[0])
    t.match(await text('token', 'list'), /reports +the installation/)
    t.type((await json('token', 'revoke', made.id, '--yes')).revoked_at, 'string')
    t.equal(await database.managementTokens.find(hashToken(made.token)), null)
  })

  t.test('a token of an account', async (t) => {
    const { id: account } = await json('account', 'create', '--name', 'Acme')
    const words = ['token', 'create', '--account', account, '--name', 'deploy', '--scopes', 'billing']
    const made = await json(...words)
    t.match(made, { account_id: account, scopes: ['billing'], expires_at: null })
    t.match(await text(...words), /token +tgm_/)
    t.equal((await json('token', 'list', '--account', account)).length, 2)
    t.type((await json('token', 'revoke', made.id, '--yes')).revoked_at, 'string')
  })

  t.test('what is wrong is refused', async (t) => {
    const words = ['token', 'create', '--name', 'x', '--scopes']
    for (const wrong of ['reed', 'read,', 'read,root'])
      t.equal((await command([...words, wrong], wiring)).code, 2, wrong)
    t.equal((await command([...words, 'read', '--expires', '2020-01-01'], wiring)).code, 2)
    t.match(await refused(...words, 'read', '--account', 'acc_x'), 'acc_x')
    t.match(await refused('token', 'revoke', 'mtk_x', '--yes'), 'mtk_x')
  })
})

t.test('tasks are listed and shown', async (t) => {
  // `tollgate task list` and `show`: the tasks of all accounts, by state and page by page.
  const { database, masterKey } = await openFresh(t, engines)
  const store = await FolderStore.open(join(engines.dataDir, 'files'), fileLinks('', linkKey(masterKey)))
  const wiring = wiringOn(database, undefined, { store: async () => store })
  const { json, refused } = commandsOn(wiring)
  const [account, other] = [await newAccount(database), await newAccount(database)]
  const oldest = await hold(database, account, 100n)
  await settle(database, oldest, 40n)
  const waiting = await hold(database, account, 100n)
  const newest = await hold(database, other, 100n)
  await settle(database, newest, 40n)

  const idsOf = async (...words: string[]): Promise<string[]> =>
    (await json('task', 'list', ...words)).map(({ id }: { id: string }) => id)

  t.test('of all accounts, of one, in several states, open ones, and page by page', async (t) => {
    t.same(await idsOf(), [newest.id, waiting.id, oldest.id])
    t.same(await idsOf('--account', account), [waiting.id, oldest.id])
    t.same(await idsOf('--state', 'waiting, succeeded', '--limit', '2'), [newest.id, waiting.id])
    t.same(await idsOf('--state', 'failed,expired'), [])
    t.same(await idsOf('--state', 'open'), [waiting.id])
    t.same(await idsOf('--before', newest.id, '--limit', '1'), [waiting.id])
    t.match(await refused('task', 'list', '--before', 'vid_x'), /no task is vid_x/)
    t.same(await idsOf('--since', '2000-01-01', '--until', '2999-01-01'), await idsOf())
    t.same(await idsOf('--since', '2999-01-01'), [])
    t.same(await idsOf('--until', '2000-01-01'), [])
    t.equal((await command(['task', 'list', '--state', 'done'], wiring)).code, 2)
  })

  t.test('one task, with its files', async (t) => {
    const shown = await json('task', 'show', oldest.id)
    t.match(shown, { id: oldest.id, state: 'succeeded', cost: '0.0000004' })
    t.same(shown.files, [])
    t.match(await refused('task', 'show', 'vid_x'), /There is no task vid_x/)
  })
})

t.test('users are invited linked and disabled', async (t) => {
  // `tollgate user …`, by the same functions as the management API, on a real PostgreSQL.
  const { database, sql } = await openFresh(t, engines)
  const { json, text, refused } = commandsOn(wiringOn(database, { trial_credit: '5' }))
  const ACTS = [...sessionOperations, ...signInOperations]
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
    t.match(ada, {
      email: 'ada@example.com',
      installation_role: 'operator',
      enabled: true,
      signed_in_at: null,
    })
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

    t.match(await refused('user', 'disable', ada.id, '--yes'), 'last operator')
    t.match(await refused('user', 'role', ada.id, '--role', 'none'), 'last operator')
    const bob = await json('user', 'create', '--email', 'bob@example.com', '--name', 'Bob')
    await json('user', 'role', bob.id, '--role', 'operator')
    const late = await json('user', 'link', ada.id)
    t.match(await json('user', 'disable', ada.id, '--yes'), { enabled: false })
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
        const rows =
          await sql`SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND state = 'active'`
        return rows.length > 0
      })
      await holding`UPDATE users SET enabled = false WHERE id = ${id}`
      return { renaming }
    })
    t.match(await (await renamed).renaming, { name: 'Francis', enabled: false })
  })
})

t.test('webhooks and their deliveries are managed', async (t) => {
  // `tollgate webhook …`, by the acts of the management API, on a real PostgreSQL.
  const { database } = await openFresh(t, engines)
  const wiring = wiringOn(database, { webhooks: { private_addresses: true } })
  const { json, refused, text } = commandsOn(wiring)
  const URL_OF = 'http://127.0.0.1:9/hook'
  const SECRET = /^whsec_[\w+/=]{32,}$/

  t.test('an endpoint is created, changed, rotated, and deleted', async (t) => {
    const account = await newAccount(database)
    const created = await json(
      'webhook',
      'create',
      '--account',
      account,
      '--url',
      URL_OF,
      '--events',
      'balance.low',
    )
    t.match(created, { url: URL_OF, events: ['balance.low'], enabled: true, secret: SECRET })
    t.match(await json('webhook', 'list', '--account', account), [{ id: created.id }])
    const shown = await json('webhook', 'show', created.id)
    t.notOk('secret' in shown, 'it is shown once')
    await json('webhook', 'update', created.id, '--events', 'all')
    t.match(await text('webhook', 'show', created.id), /^events +all$/m)
    t.match(await text('webhook', 'list', '--account', account), / all +true/)
    const rotated = await json('webhook', 'rotate', created.id)
    t.match(rotated, { secret: SECRET, former_secret_until: String })
    t.not(rotated.secret, created.secret)
    const update = (...words: string[]) => json('webhook', 'update', created.id, ...words)
    t.match(await update('--events', 'all', '--disable'), { events: null, enabled: false })
    t.match(await refused('webhook', 'test', created.id), /switched off/)
    t.match(await update('--enable', '--url', `${URL_OF}/2`), { enabled: true, url: `${URL_OF}/2` })
    t.match(await json('webhook', 'delete', created.id, '--yes'), { deleted: true })
    t.match(await refused('webhook', 'show', created.id), created.id)
    const acts = await database.auditRecord.list({ subjectId: created.id, limit: 20 })
    t.ok(acts.length >= 4)
    t.ok(acts.every(({ actor }) => actor === 'operator:test'))
    t.notMatch(JSON.stringify(acts.map(({ before, after }) => [before, after])), 'whsec_')
  })

  t.test('deliveries are listed, shown and sent again', async (t) => {
    const account = await newAccount(database)
    const { id } = await json('webhook', 'create', '--account', account, '--url', URL_OF)
    const test = await json('webhook', 'test', id)
    t.match(test, { endpoint_id: id, type: 'webhook.test', state: 'waiting' })
    const listed = (...words: string[]) => json('webhook', 'deliveries', '--account', account, ...words)
    t.match(await listed(), [{ id: test.id }])
    t.match(await listed('--endpoint', id, '--state', 'waiting'), [{ id: test.id }])
    t.same(await listed('--state', 'failed'), [])
    t.match(await listed('--since', '2000-01-01', '--until', '2999-01-01'), [{ id: test.id }])
    for (const never of [
      ['--since', '2999-01-01'],
      ['--until', '2000-01-01'],
    ])
      t.same(await listed(...never), [])
    t.match(JSON.parse((await json('webhook', 'delivery', test.id)).body), { type: 'webhook.test' })
    t.match(await json('webhook', 'replay', test.id), { state: 'waiting' })
    t.match(await json('webhook', 'replay-failed', id, '--since', '2026-01-01'), { replayed: 0 })
  })

  t.test('a cursor of another list is refused: it does not begin the deliveries again', async (t) => {
    const act = findImplementation<object, typeof listDeliveries>(deliveryOperations, listDeliveries)
    const input = { account_id: await newAccount(database), cursor: printCursor('dlv_x') }
    const options = { database, services: {}, caller: commandCaller('operator:test', null), now: Date.now() }
    await t.rejects(runImplementation(act, input, options), { code: 'invalid_request' })
  })

  t.test('the secret of callbacks is shown and rotated', async (t) => {
    const account = await newAccount(database)
    const { secret } = await json('webhook', 'callback-secret', account)
    t.match(secret, SECRET)
    t.equal((await json('webhook', 'callback-secret', account)).secret, secret)
    const rotated = await json('webhook', 'rotate-callback-secret', account)
    t.match(rotated.secret, SECRET)
    t.not(rotated.secret, secret)
    t.equal((await json('webhook', 'callback-secret', account)).secret, rotated.secret)
    t.match(await refused('webhook', 'callback-secret', 'acc_x'), /acc_x/)
  })

  t.test('wrong addresses, events and options are refused', async (t) => {
    const account = await newAccount(database)
    const create = ['webhook', 'create', '--account', account, '--url']
    t.match(await refused(...create, 'ftp://example.com'), /http/)
    const { refused: refusedPublic } = commandsOn(wiringOn(database, {}))
    t.match(await refusedPublic(...create, URL_OF), /public/)
    const code = async (...words: string[]) => (await command(words, wiring)).code
    t.equal(await code(...create, URL_OF, '--events', 'moon.full'), 2)
    t.equal(await code('webhook', 'update', 'whe_x', '--enable', '--disable'), 2)
    t.equal(await code('webhook', 'deliveries', '--account', account, '--state', 'odd'), 2)
    t.match(await refused(...create, URL_OF, '--events', 'channel.opened'), /channel\.opened/)
    t.same(await json('webhook', 'list', '--account', account), [])
  })
})
