/** The management API by HTTP: sessions, tokens, origins, roles; and that a repeated request acts once. */
import t from 'tap'
import type { Scope } from '../../../schemas/management/operation.ts'
import {
  generateManagementToken,
  generateToken,
  hashToken,
  shownTokenPrefix,
} from '../../../src/core/keys/bearer-token.ts'
import { connectTo } from '../../support/connections.ts'
import { borrowService } from '../../support/lend-services.ts'
import { MANAGE, signIn } from '../../support/manage.ts'
import { callConfig, rowsOf, say, traceOf } from '../support.ts'

const CONFIG = callConfig({ fast: { simulate: 'tokens=2' } })
/** More than a gateway has connections to PostgreSQL. */
const AT_ONCE = 12

t.test('management', async (t) => {
  const service = await borrowService(t, CONFIG)
  const { database, baseUrl } = service
  const owner = await signIn(service)
  const account_id = owner.user.accountId
  const stranger = await signIn(service)
  const operator = await signIn(service, { role: 'operator' })
  const auditor = await signIn(service, { role: 'auditor' })
  const newKey = { account_id, name: 'laptop' }

  const makeToken = async (accountId: string | null, scopes: Scope[], expiresAt: Date | null = null) => {
    const token = generateManagementToken()
    const { id } = await database.managementTokens.create({
      tokenHash: hashToken(token),
      prefix: shownTokenPrefix(token),
      name: 'test',
      accountId,
      scopes,
      expiresAt,
    })
    return { id, token }
  }
  const byToken = async (token: string, path: string, init: RequestInit = {}) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const response = await fetch(`${baseUrl}${MANAGE}${path}`, { ...init, headers })
    return { status: response.status, body: (await response.json()) as { error?: { code: string } } }
  }

  await t.test('a request without a session is refused', async (t) => {
    const response = await fetch(`${baseUrl}${MANAGE}/session`)
    t.equal(response.status, 401)
    t.equal(response.headers.get('access-control-allow-origin'), null, 'no page of another origin reads it')
    t.match(await response.json(), { error: { code: 'not_signed_in' } })
  })

  await t.test('a page of another origin, or without the session’s token, changes nothing', async (t) => {
    const before = (await database.keys.list(account_id)).length
    const wrong: Record<string, string>[] = [
      { origin: 'https://evil.example' },
      { origin: '' },
      { 'x-csrf-token': stranger.csrfToken },
      { 'x-csrf-token': '' },
    ]
    for (const headers of wrong)
      t.match(await owner.send('POST', '/keys', newKey, headers), {
        status: 403,
        body: { error: { code: 'permission_denied' } },
      })
    t.equal((await database.keys.list(account_id)).length, before)
  })

  await t.test('a form changes nothing, also one that sends JSON as text', async (t) => {
    const before = (await database.keys.list(account_id)).length
    const json = JSON.stringify(newKey)
    const parts = new FormData()
    for (const [name, value] of Object.entries(newKey)) parts.set(name, value)
    const forms: readonly (URLSearchParams | FormData | Blob)[] = [
      new URLSearchParams(newKey),
      parts,
      new Blob([json], { type: 'text/plain' }),
      new Blob([json], { type: 'application/x-www-form-urlencoded' }),
    ]
    const own = { cookie: owner.cookie, origin: baseUrl, 'sec-fetch-site': 'same-origin' }
    for (const [more, status] of [
      [{ 'x-csrf-token': owner.csrfToken }, 400],
      [{}, 403],
      [{ origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }, 403],
    ] as const)
      for (const body of forms) {
        const headers = { ...own, ...more }
        const response = await fetch(`${baseUrl}${MANAGE}/keys`, { method: 'POST', headers, body })
        t.equal(response.status, status, await response.text())
      }
    t.equal((await database.keys.list(account_id)).length, before)
  })

  await t.test('signing in makes a new session, whatever cookie the browser has', async (t) => {
    const signedIn = async (cookie: string, csrfToken = '') => {
      const token = generateToken()
      await database.sessions.createLink({ tokenHash: hashToken(token), userId: owner.user.id, minutes: 5 })
      const json = { 'content-type': 'application/json' }
      const headers = { ...json, origin: baseUrl, cookie, 'x-csrf-token': csrfToken }
      const init = { method: 'POST', headers, body: JSON.stringify({ token }) }
      const response = await fetch(`${baseUrl}${MANAGE}/sign-in/link`, init)
      t.equal(response.status, 200)
      const [flags, ...others] = response.headers.getSetCookie()
      t.match(
        flags,
        /; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax$/,
        'no script reads it, no other site sends it',
      )
      t.same(others, [])
      const made = flags!.split(';')[0]!
      return { cookie: made, csrfToken: ((await response.json()) as { csrf_token: string }).csrf_token }
    }
    const statusOf = async (cookie: string) =>
      (await fetch(`${baseUrl}${MANAGE}/session`, { headers: { cookie } })).status
    const planted = stranger.cookie.replace(/=.*/, `=${'a'.repeat(43)}`)
    const first = await signedIn(planted)
    t.not(first.cookie, planted)
    t.equal(await statusOf(planted), 401, 'a planted cookie opens nothing')
    const second = await signedIn(first.cookie, first.csrfToken)
    t.not(second.cookie, first.cookie)
    t.equal(await statusOf(second.cookie), 200)
  })

  await t.test('a link signs in once', async (t) => {
    const again = await signIn(service, { user: owner.user })
    t.match(await again.send('GET', '/session'), { status: 200, body: { user: { id: owner.user.id } } })
    const { body } = await again.send('POST', '/sign-out', {})
    t.same(body, { signed_out: true })
    t.match(await again.send('GET', '/session'), { status: 401 })
    t.match(await again.send('POST', '/sign-in/link', { token: 'used' }), { status: 400 })
  })

  await t.test('an account is nothing to a stranger, and a role decides what it may', async (t) => {
    const { body: key } = await owner.send('POST', '/keys', newKey)
    t.match(key, { name: 'laptop', key: /^sk-tollgate-/ })
    t.match(await stranger.send('GET', `/keys?account_id=${account_id}`), { status: 404 })
    t.match(await stranger.send('GET', `/keys/${key.id}`), { status: 404 })
    t.match(await stranger.send('POST', `/keys/${key.id}/reveal`, {}), { status: 404 })
    t.match(await auditor.send('GET', `/keys?account_id=${account_id}`), { status: 200 })
    t.match(await auditor.send('POST', '/keys', newKey), { status: 404 })
    t.match(await auditor.send('POST', `/keys/${key.id}/reveal`, {}), { status: 404 })
    t.match(await operator.send('POST', `/keys/${key.id}/reveal`, {}), {
      status: 200,
      body: { key: key.key },
    })
    const { body: revoked } = await owner.send('POST', `/keys/${key.id}/revoke`, {})
    t.ok(revoked.revoked_at)
    const acts = await database.auditRecord.list({ subjectId: key.id, limit: 10 })
    t.same(
      acts.map(({ action, actor }) => [action, actor]),
      [
        ['key.revoke', `user:${owner.user.id}`],
        ['key.reveal', `user:${operator.user.id}`],
        ['key.create', `user:${owner.user.id}`],
      ],
      'the audit record names who did it',
    )
  })

  await t.test('a sensitive act needs a fresh proof of identity', async (t) => {
    const { body: key } = await owner.send('POST', '/keys', { account_id, name: 'old' })
    const sql = connectTo(t, service.engines.databaseUrl)
    const confirmedAgo = (minutes: number) => sql`
      UPDATE sessions SET confirmed_at = now() - make_interval(mins => ${minutes}) WHERE user_id = ${owner.user.id}`
    await confirmedAgo(11)
    t.match(await owner.send('POST', `/keys/${key.id}/reveal`, {}), {
      status: 403,
      body: { error: { code: 'reauthentication_required' } },
    })
    await confirmedAgo(0)
    t.match(await owner.send('POST', `/keys/${key.id}/reveal`, {}), { status: 200 })
  })

  await t.test('one Idempotency-Key makes one key, also when both requests come at once', async (t) => {
    const before = (await database.keys.list(account_id)).length
    const send = (name: string) =>
      owner.send('POST', '/keys', { account_id, name }, { 'idempotency-key': 'once' })
    const [one, two] = await Promise.all([send('same'), send('same')])
    t.same(one, two)
    t.equal((await database.keys.list(account_id)).length, before + 1)
    t.match(await send('another'), { status: 409, body: { error: { code: 'idempotency_key_reuse' } } })
  })

  await t.test('requests that each hold an Idempotency-Key do not wait for each other', async (t) => {
    const hook = { account_id, url: 'https://receiver.example.com/hook' }
    const { body: webhook } = await owner.send('POST', '/webhooks', hook)
    const wanted: readonly (readonly [path: string, body: (at: number) => object])[] = [
      ['/knowledge-bases', (at) => ({ account_id, name: `base ${at}` })],
      ['/webhooks', () => hook],
      [`/webhooks/${webhook.id}/test`, () => ({})],
      ['/callback-secret/rotate', () => ({ account_id })],
    ]
    for (const [path, body] of wanted) {
      const sent = Array.from({ length: AT_ONCE }, (_, at) =>
        owner.send('POST', path, body(at), { 'idempotency-key': `${path}-${at}` }),
      )
      const answers = await Promise.all(sent)
      t.same(
        answers.filter(({ status }) => status < 300).length,
        AT_ONCE,
        `${path}: ${answers.map(({ status }) => status)}`,
      )
    }
  })

  await t.test('what changes no row that is listed is in the audit record too', async (t) => {
    const { body: webhook } = await owner.send('POST', '/webhooks', {
      account_id,
      url: 'https://receiver.example.com/hook',
    })
    await owner.send('POST', '/callback-secret/rotate', { account_id })
    await owner.send('POST', '/callback-secret/reveal', { account_id })
    const { body: delivery } = await owner.send('POST', `/webhooks/${webhook.id}/test`, {})
    await owner.send('POST', `/webhook-deliveries/${delivery.id}/replay`, {})
    await owner.send('PUT', `/me/email-choices/${account_id}`, { events: ['balance.low'] })
    const acts = await database.auditRecord.list({ accountId: account_id, limit: 4 })
    t.match(
      acts.map(({ action, subjectId, actor }) => [action, subjectId, actor]),
      [
        ['email_choices.set', owner.user.id],
        ['webhook.replay', delivery.id],
        ['webhook.test', webhook.id],
        ['webhook.reveal', /^whe_/],
      ].map((act) => [...act, `user:${owner.user.id}`]),
    )
  })

  await t.test('a token acts in its account, within its scopes, until it ends', async (t) => {
    const list = `/keys?account_id=${account_id}`
    const reader = await makeToken(account_id, ['read'])
    t.match(await byToken(reader.token, list), { status: 200 })
    t.match(await byToken(reader.token, '/keys', { method: 'POST', body: JSON.stringify(newKey) }), {
      status: 403,
    })
    t.match(await byToken(reader.token, `/keys?account_id=${stranger.user.accountId}`), { status: 404 })
    const installation = await makeToken(null, ['read'])
    t.match(await byToken(installation.token, list), { status: 200 })
    const past = await makeToken(account_id, ['read'], new Date(Date.now() - 1000))
    t.match(await byToken(past.token, list), { status: 401 })
    await database.managementTokens.revoke(reader.id)
    t.match(await byToken(reader.token, list), { status: 401 })
    const models = await fetch(`${baseUrl}/v1/models`, {
      headers: { authorization: `Bearer ${installation.token}` },
    })
    t.equal(models.status, 401, 'a management token opens no model')
  })

  await t.test('the calls of an account, one in detail, and their course over time', async (t) => {
    const { key } = await service.newKey('100000')
    const { account } = (await database.keys.findCredential(database.keys.lookupHash(key)))!
    const response = await service.chat(key, { model: 'fast', messages: say('hello'), max_tokens: 2 })
    await response.text()
    const [row] = await rowsOf(service, key, [traceOf(response)])
    const { body: page } = await operator.send('GET', `/calls?account_id=${account.id}&model=fast`)
    t.same(page.data, [row])
    const { body: one } = await operator.send('GET', `/calls/${row!.id}?account_id=${account.id}`)
    t.same(one.call, row)
    t.ok(one.detail.gateway.length > 0)
    const { body: series } = await operator.send('GET', `/calls/series?account_id=${account.id}&period=today`)
    t.match(series.data, [{ requests: 1, failed: 0, cost: row!.cost }])
    const { body: usage } = await operator.send('GET', `/usage?account_id=${account.id}&by=key&period=today`)
    t.match(usage, {
      total: { requests: 1, cost: row!.cost },
      before: { requests: 0 },
      groups: [{ id: row!.key_id, name: row!.key_name, cost: row!.cost }],
      by_day: [{ group: row!.key_id }],
    })
    const all = await operator.send('GET', '/installation/usage?period=today&limit=100000')
    t.match(all.body, { by: 'account', account_id: null, has_more: false, before: { requests: Number } })
    t.match(
      all.body.rows.find(({ account_id }: { account_id: string }) => account_id === account.id),
      { name: account.name, requests: 1, cost: row!.cost },
    )
    const ofAccount = `/installation/usage?account_id=${account.id}&period=today`
    t.match((await operator.send('GET', ofAccount)).body, {
      by: 'model',
      rows: [{ model: 'fast', requests: 1 }],
      total: { cost: row!.cost },
    })
    t.match((await operator.send('GET', `${ofAccount}&by=day`)).body.rows, [{ day: /^\d{4}-\d\d-\d\d$/ }])
    t.match(await operator.send('GET', '/installation/usage?account_id=acc_x'), { status: 404 })
    const { body: home } = await operator.send('GET', `/home?account_id=${account.id}`)
    t.match(home, {
      spend_per_day: row!.cost,
      spend_days: 0,
      runway_days: Number,
      by_day: [{ requests: 1, failed: 0, cost: row!.cost }],
    })
    t.same(home.keys_near_cap, [])
    const refunded = { ref: row!.request_id, reason: 'the answer was empty', amount: '3' }
    const path = `/accounts/${account.id}/refunds`
    t.match(
      await operator.send('POST', path, { ...refunded, amount: '13.1' }),
      { status: 400 },
      'above the charge',
    )
    const [one_, two] = await Promise.all([
      operator.send('POST', path, refunded),
      operator.send('POST', path, refunded),
    ])
    t.same([one_.body.repeated, two.body.repeated].sort(), [false, true], 'once')
    t.match(await operator.send('POST', path, { ...refunded, amount: '4' }), { status: 409 })
    t.match(await operator.send('POST', path, { ...refunded, ref: 'req_none' }), { status: 404 })
    const { body: after } = await operator.send('GET', `/calls/${row!.id}?account_id=${account.id}`)
    t.match(after.refund, { amount: '3', reason: refunded.reason })
    const detail = await service.get(key, `/v1/logs/${row!.id}`)
    const { refund: seen } = (await detail.json()) as { refund: unknown }
    t.same(seen, after.refund, 'the key sees it too')
    const { body: ledger } = await operator.send('GET', `/accounts/${account.id}/ledger?limit=1`)
    t.match(ledger.data, [
      { kind: 'adjustment', amount: '3', ref: row!.request_id, note: refunded.reason, actor: /^user:/ },
    ])
    t.match(
      (await operator.send('GET', `/usage?account_id=${account.id}&period=today`)).body.total,
      { cost: row!.cost },
      'what was used stays used',
    )
    const { differences } = await database.audits.verifyWallets()
    t.same(
      differences.filter(({ account_id: id }) => id === account.id),
      [],
    )
    t.match(await stranger.send('GET', `/calls?account_id=${account.id}`), { status: 404 })
    t.match(await operator.send('GET', `/calls?account_id=${account.id}&status=odd`), {
      status: 400,
      body: { error: { message: /status/ } },
    })
  })
})
