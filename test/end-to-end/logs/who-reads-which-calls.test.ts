/**
 * The call log as its readers have it, over all of its endpoints: which key sees which calls, what is refused and how,
 * what reading costs, and how often a key may read.
 */
import t, { type Test } from 'tap'
import { AUTH_MESSAGES } from '../../../schemas/failure.ts'
import { generateApiKey } from '../../../src/core/keys/material.ts'
import { connectTo } from '../../support/connections.ts'
import { borrowService } from '../../support/lend-services.ts'
import { type LogJson, testConfig, until } from '../../support/service.ts'
import { balanceOf, errorOf, say, traceOf } from '../support.ts'

const LIMIT_PER_MINUTE = 60
const TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'invalid_request_error',
  405: 'invalid_request_error',
  429: 'rate_limit_error',
}
const OTHER_METHODS = ['POST', 'PUT', 'DELETE'] as const

interface Page {
  readonly data: LogJson[]
  readonly has_more: boolean
  readonly next_cursor: string | null
}

t.test('the call log', async (t) => {
  const service = await borrowService(t, testConfig({ fast: { simulate: 'tokens=2' }, other: {} }))
  const { database } = service
  const sql = connectTo(t, service.engines.databaseUrl)

  const { accountId, key: plain } = await service.newKey('100000')
  const another = async (more: Parameters<typeof database.keys.create>[0] | object = {}) =>
    database.keys.create({ name: 'another', accountId, ...more })
  const toggled = await another({ accountLogs: true })
  const employee = await another({ kind: 'employee' })
  const compute = await another({ kind: 'compute' })
  // The toggle of a key that may never read the account's log, which no command sets.
  const employeeToggled = await another({ kind: 'employee' })
  const computeToggled = await another({ kind: 'compute' })
  await sql`
    UPDATE api_keys SET account_logs = true
    WHERE id = ANY (${[employeeToggled, computeToggled].map(({ key }) => key.id)}::text[])`
  // With the grant that an agent's key has.
  const agent = await another({ kind: 'employee' })
  await sql`UPDATE api_keys SET kind = 'agent', agent_id = 'agt_1', account_logs = true WHERE id = ${agent.key.id}`
  const stranger = await service.newKey('100000', { accountLogs: true })

  const call = async (key: string, model = 'fast'): Promise<string> => {
    const response = await service.chat(key, { model, messages: say('hi'), max_tokens: 2 })
    await response.arrayBuffer()
    return traceOf(response)
  }
  const callers = { plain, toggled: toggled.raw, employee: employee.raw, compute: compute.raw }
  const made = new Map<string, string>()
  for (const [name, key] of Object.entries(callers)) made.set(name, await call(key))
  const foreign = await call(stranger.key)
  const rows = await service.logs(toggled.raw, (found) => found.length >= made.size, '&scope=account')
  const rowOfCaller = (name: string): LogJson => rows.find((row) => row.request_id === made.get(name))!
  const [foreignRow] = await service.logs(stranger.key, (found) => found.length === 1)

  const get = (key: string, path: string) => service.get(key, path)
  const listed = async (key: string, query = ''): Promise<string[]> => {
    const response = await get(key, `/v1/logs?limit=200${query}`)
    if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`)
    return ((await response.json()) as Page).data.map(({ request_id }) => request_id).sort()
  }
  const refused = async (t: Test, response: Response, status: number, code: string, message = /\S/) => {
    t.equal(response.status, status, code)
    t.match(response.headers.get('content-type'), /^application\/json/)
    t.match(response.headers.get('x-gateway-trace'), /^req_/)
    const body = (await response.json()) as { error: Record<string, unknown> }
    t.match(body, { error: { code, message, type: TYPES[status] } })
    t.same(Object.keys(body.error).sort(), ['code', 'message', 'type'])
    t.same(Object.keys(body), ['error'], 'no request_id')
  }
  const all = [...made.values()].sort()
  const anyRow = rowOfCaller('plain').id
  const ENDPOINTS = ['/v1/logs', `/v1/logs/${anyRow}`, '/v1/logs/summary']

  await t.test('every key reads its own calls, and one with the toggle the whole account', async (t) => {
    for (const [name, key] of Object.entries(callers)) {
      t.same(await listed(key), [made.get(name)], name)
      const summary = await (await get(key, '/v1/logs/summary')).json()
      t.match(summary, { scope: 'key', total: { requests: 1 }, status_counts: { success: 1 } }, name)
      t.equal((await get(key, `/v1/logs/${rowOfCaller(name).id}`)).status, 200, name)
    }
    t.same(await listed(toggled.raw, '&scope=account'), all)
    t.same(await listed(toggled.raw, `&scope=account&key_id=${employee.key.id}`), [made.get('employee')])
    t.match(await (await get(toggled.raw, '/v1/logs/summary?scope=account')).json(), {
      scope: 'account',
      total: { requests: all.length },
    })
    t.match(await (await get(toggled.raw, `/v1/logs/${anyRow}`)).json(), { id: anyRow, kind: null })
  })

  await t.test('scope account without the right to it is refused, whatever the toggle says', async (t) => {
    const keys = [plain, employee.raw, compute.raw, employeeToggled.raw, computeToggled.raw]
    for (const key of keys)
      for (const path of ENDPOINTS)
        await refused(t, await get(key, `${path}?scope=account`), 403, 'permission_denied')
  })

  await t.test('an agent key is refused on every endpoint', async (t) => {
    for (const path of ENDPOINTS)
      for (const query of ['', '?scope=key', '?scope=account', '?scope=all', '?status=x'])
        await refused(t, await get(agent.raw, path + query), 403, 'permission_denied')
  })

  await t.test("a row outside the key's sight is not found, like one that is not there", async (t) => {
    const elsewhere = rowOfCaller('toggled').id
    const seen: unknown[] = []
    for (const [key, id] of [
      [plain, elsewhere],
      [employee.raw, elsewhere],
      [employeeToggled.raw, elsewhere],
      [computeToggled.raw, elsewhere],
      [toggled.raw, foreignRow!.id],
      [stranger.key, anyRow],
      [plain, 999_999_999],
      [plain, 2 ** 53],
    ] as const) {
      const response = await get(key, `/v1/logs/${id}`)
      seen.push((await errorOf(response.clone())).message)
      await refused(t, response, 404, 'log_not_found')
    }
    t.equal(new Set(seen).size, 1, 'both look alike')
    for (const id of ['0', '-1', '1.5', 'req_x', `${anyRow}x`, `0${anyRow}`, '%00', '9'.repeat(30)])
      await refused(t, await get(plain, `/v1/logs/${id}`), 404, 'log_not_found')
    t.same(await listed(toggled.raw, `&scope=account&ref=${foreign}`), [])
    t.same(await listed(toggled.raw, `&scope=account&key_id=${stranger.keyId}`), [])
  })

  await t.test('the toggle is in force within a second, in both directions', async () => {
    const { raw, key } = await another()
    const statusIs = (status: number) =>
      until(
        `scope account answers ${status}`,
        async () => (await get(raw, '/v1/logs?scope=account&limit=1')).status === status,
      )
    await statusIs(403)
    await database.keys.update(key.id, { accountLogs: true })
    await statusIs(200)
    await database.keys.update(key.id, { accountLogs: false })
    await statusIs(403)
  })

  await t.test('every error of the table', async (t) => {
    const { raw: bad } = await another({ accountLogs: true })
    const listErrors = [
      'status=sucess',
      'status=success,sucess',
      'from=2026-01-01',
      'to=2026-01-01',
      'from=2026-01-01&to=',
      'include=everything',
      'include=attempts,x',
      'unit_type=words',
      'limit=0',
      'limit=10001',
      'order=down',
      'scope=all',
      'period=year',
    ]
    for (const query of listErrors)
      for (const form of ['', '&format=csv'])
        await refused(
          t,
          await get(bad, `/v1/logs?${query}${form}`),
          400,
          'invalid_request',
          /^Parameter \w+: /,
        )
    const summaryErrors = [
      'model=fast',
      'status=success',
      'unit_type=chat',
      'error_code=x',
      'ref=req_x',
      'period=all',
      'period=year',
      'from=2026-01-01',
      'from=2024-01-01&to=2025-12-31',
    ]
    for (const query of summaryErrors)
      await refused(t, await get(bad, `/v1/logs/summary?${query}`), 400, 'invalid_request')
    for (const path of ENDPOINTS)
      for (const method of OTHER_METHODS) {
        const response = await fetch(service.baseUrl + path, {
          method,
          headers: { authorization: `Bearer ${bad}` },
        })
        await refused(t, response, 405, 'method_not_allowed')
      }
  })

  await t.test('401 on every endpoint, with the message that tells why', async (t) => {
    const revoked = await another()
    await database.keys.revoke(revoked.key.id)
    const disabled = await another()
    await database.keys.update(disabled.key.id, { enabled: false })
    const expired = await another({ expiresAt: new Date(Date.now() - 1) })
    const closed = await service.newKey('100')
    await database.accounts.setEnabled(closed.accountId, false)
    const presented: [key: string, message: string][] = [
      ['', AUTH_MESSAGES.missing],
      ['sk-nothing', AUTH_MESSAGES.missing],
      [generateApiKey(), AUTH_MESSAGES.invalid],
      [revoked.raw, AUTH_MESSAGES.revoked],
      [disabled.raw, AUTH_MESSAGES.revoked],
      [expired.raw, AUTH_MESSAGES.expired],
      [closed.key, AUTH_MESSAGES.inactive],
    ]
    for (const path of ENDPOINTS)
      for (const [key, message] of presented) {
        const response = key === '' ? await fetch(service.baseUrl + path) : await get(key, path)
        t.equal((await errorOf(response.clone())).message, message)
        await refused(t, response, 401, 'invalid_api_key')
      }
  })

  await t.test('cursors: signed, for one account, one direction and the filters of the page', async (t) => {
    for (let i = 0; i < 3; i++) made.set(`more ${i}`, await call(toggled.raw, i === 1 ? 'other' : 'fast'))
    await service.logs(toggled.raw, (found) => found.length >= made.size, '&scope=account')
    const { raw: reader } = await another({ accountLogs: true })
    const page = async (query: string): Promise<Page> =>
      (await (await get(reader, `/v1/logs?scope=account&${query}`)).json()) as Page
    const first = await page('limit=1&order=asc')
    const cursor = first.next_cursor!
    const at = Math.floor(cursor.length / 3)
    const changed = cursor.slice(0, at) + (cursor[at] === 'A' ? 'B' : 'A') + cursor.slice(at + 1)
    const using = (key: string, query: string) => get(key, `/v1/logs?scope=account&${query}`)
    await refused(t, await using(reader, `cursor=${changed}`), 400, 'invalid_request', /cursor/)
    await refused(t, await using(stranger.key, `cursor=${cursor}`), 400, 'invalid_request', /cursor/)
    await refused(t, await using(reader, `cursor=${cursor}&order=desc`), 400, 'invalid_request', /order/)
    await refused(
      t,
      await using(reader, `cursor=${cursor}&from=2026-01-01`),
      400,
      'invalid_request',
      /together/,
    )
    await refused(t, await using(reader, `cursor=${cursor}&period=year`), 400, 'invalid_request', /period/)
    await refused(t, await using(reader, `cursor=${cursor}&status=x`), 400, 'invalid_request', /status/)

    const rest = await page(`cursor=${cursor}&limit=200`)
    t.equal(rest.data.length, made.size - 1, 'all others')
    const narrowed = await page(`cursor=${cursor}&model=other&limit=200`)
    t.same(
      narrowed.data.map(({ model }) => model),
      ['other'],
      'a filter narrows what is left of the walk',
    )
    const own = (await (await get(reader, `/v1/logs?cursor=${cursor}`)).json()) as Page
    t.same(own.data, [], 'a cursor widens nothing: this key made no call')
  })

  await t.test('a window beyond any call is empty', async (t) => {
    const { raw } = await another({ accountLogs: true })
    for (const window of ['from=2200-01-01&to=2200-06-01', 'from=1969-01-01&to=1969-06-01']) {
      t.same(await listed(raw, `&scope=account&${window}`), [], window)
      const summary = await get(raw, `/v1/logs/summary?scope=account&${window}`)
      t.equal(summary.status, 200, window)
      t.match(
        await summary.json(),
        { total: { requests: 0, cost: '0' }, by_day: { length: 0 }, by_model: { length: 0 } },
        window,
      )
    }
  })

  await t.test('reading costs nothing, leaves no row, and is free to a key without balance', async (t) => {
    const poor = await service.newKey('0')
    t.equal((await service.chat(poor.key, { model: 'fast', messages: say('hi') })).status, 402)
    const [row] = await service.logs(poor.key, (found) => found.length === 1)
    t.match(row, { status: 'rejected', error_code: 'quota_exceeded', cost: '0' })
    const before = await balanceOf(service, poor.key)
    for (const path of ['/v1/logs', `/v1/logs/${row!.id}`, '/v1/logs/summary'])
      t.equal((await get(poor.key, path)).status, 200, path)
    for (const path of ['/v1/logs?status=x', '/v1/logs?scope=account', '/v1/logs/1x'])
      t.not((await get(poor.key, path)).status, 200, path)
    // Whatever the reads had left would have been booked before this call.
    await (await service.chat(poor.key, { model: 'fast', messages: say('hi') })).arrayBuffer()
    const rows = await service.logs(poor.key, (found) => found.length > 1)
    t.same(
      rows.map(({ model }) => model),
      ['fast', 'fast'],
      'the refused calls alone',
    )
    t.same(await balanceOf(service, poor.key), before)
  })

  await t.test('one limit for all three endpoints, for each key', async (t) => {
    const { raw } = await another()
    const { raw: second } = await another()
    const paths = Array.from({ length: LIMIT_PER_MINUTE }, (_, index) => ENDPOINTS[index % ENDPOINTS.length]!)
    const left: number[] = []
    for (const path of paths) {
      const response = await get(raw, path)
      t.not(response.status, 429, path)
      t.equal(response.headers.get('x-ratelimit-limit'), String(LIMIT_PER_MINUTE))
      left.push(Number(response.headers.get('x-ratelimit-remaining')))
    }
    t.same(
      left,
      Array.from({ length: LIMIT_PER_MINUTE }, (_, index) => LIMIT_PER_MINUTE - 1 - index),
      'each request takes one, refused ones too',
    )
    for (const path of [...ENDPOINTS, '/v1/logs?status=x', '/v1/logs?format=csv']) {
      const response = await get(raw, path)
      t.match(response.headers.get('retry-after'), /^[1-9]\d?$/)
      t.equal(response.headers.get('x-ratelimit-remaining'), '0')
      t.match(response.headers.get('x-ratelimit-reset'), /^[1-9]\d?$/)
      await refused(t, response, 429, 'logs_rate_limited')
    }
    t.equal((await get(second, '/v1/logs')).headers.get('x-ratelimit-remaining'), '59')
  })
})
