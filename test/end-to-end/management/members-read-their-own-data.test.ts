/** A member of an organization reads what their own keys did, and nothing of its money; an operator reads all calls. */
import t from 'tap'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import { until } from '../../support/eventually.ts'
import { borrowService } from '../../support/lend-services.ts'
import { signIn } from '../../support/manage.ts'
import { callConfig, say } from '../support.ts'

t.test('members', async (t) => {
  const service = await borrowService(
    t,
    callConfig({ fast: { simulate: 'tokens=2' }, broken: { simulate: 'fault=status:500' } }),
  )
  const { database } = service
  const owner = await signIn(service)
  const member = await signIn(service)
  const operator = await signIn(service, { role: 'operator' })
  const credit = 1_000_000n * ONE_CREDIT
  const { account } = await database.accounts.create({ name: 'Acme', kind: 'organization', credit })
  const account_id = account.id
  await database.organizations.putMember(account_id, owner.user.accountId, 'owner')
  await database.organizations.putMember(account_id, member.user.accountId, 'member')
  const { body: theirs } = await owner.send('POST', '/keys', { account_id, name: 'theirs' })
  const asked = { organizationId: account_id, memberId: member.user.accountId, name: 'mine' }
  const { id: requestId } = await database.keyRequests.create(asked)
  const mine = await database.keyRequests.approve({ requestId, by: owner.user.accountId, spendCap: credit })
  const paths = (path: string) => `${path}${path.includes('?') ? '&' : '?'}account_id=${account_id}`

  t.test('without keys, a member has empty lists', async (t) => {
    const other = await signIn(service)
    await database.organizations.putMember(account_id, other.user.accountId, 'member')
    t.match(await other.send('GET', paths('/calls')), { status: 200, body: { data: [] } })
    t.match(await other.send('GET', paths('/calls/series')), { status: 200, body: { data: [] } })
    t.match(await other.send('GET', paths('/usage')), { status: 200, body: { total: { requests: 0 } } })
    t.match(await other.send('GET', paths('/home')), { status: 200, body: { wallet: null, by_day: [] } })
  })

  t.test('a member sees the calls of their keys, and no wallet', async (t) => {
    const call = { model: 'fast', messages: say('hello'), max_tokens: 2 }
    for (const key of [theirs.key, mine.raw]) t.equal((await service.chat(key, call)).status, 200)
    t.equal((await service.chat(theirs.key, { ...call, model: 'broken' })).status, 500)
    await until(
      'all calls are logged',
      async () => (await owner.send('GET', paths('/calls'))).body.data.length === 3,
    )
    // The log has a row at once; the sums count it once it is copied.
    await until(
      'all calls are in the sums',
      async () => (await owner.send('GET', paths('/usage'))).body.total.requests === 3,
    )
    const { body: calls } = await member.send('GET', paths('/calls'))
    t.match(calls.data, [{ key_id: mine.key.id }])
    t.equal(calls.data.length, 1)
    t.match((await member.send('GET', paths('/calls/series'))).body.data, [{ requests: 1 }])
    t.match((await member.send('GET', paths('/usage'))).body, { total: { requests: 1 } })
    const { body: home } = await member.send('GET', paths('/home'))
    t.match(home, { wallet: null, runway_days: null, by_day: [{ requests: 1, failed: 0 }] })
    t.match((await owner.send('GET', paths('/home'))).body, { wallet: { account_id } })
    t.match(await member.send('GET', `/accounts/${account_id}`), { status: 403 })
  })

  t.test('an operator finds the calls of all accounts, by every filter', async (t) => {
    const list = (query: string) => operator.send('GET', `/installation/calls?period=today&${query}`)
    const { body: failed } = await list(`account_id=${account_id}&status=error`)
    t.match(failed.data, [
      { model: 'broken', account_id, account_name: 'Acme', channel_id: String, key_name: 'theirs' },
    ])
    const [{ channel_id: channel, request_id: ref }] = failed.data
    t.match((await list(`channel_id=${channel}&key_id=${theirs.id}`)).body.data, [{}, {}])
    t.match((await list(`ref=${ref}`)).body.data, [{ request_id: ref }])
    t.equal((await list(`channel_id=none&account_id=${account_id}`)).body.data.length, 0)
    const first = (await list(`account_id=${account_id}&limit=2`)).body
    t.equal(first.has_more, true)
    const rest = (await list(`account_id=${account_id}&limit=2&cursor=${first.next_cursor}`)).body
    t.equal(new Set([...first.data, ...rest.data].map(({ id }: { id: number }) => id)).size, 3)
    const series = await operator.send(
      'GET',
      `/installation/calls/series?period=today&account_id=${account_id}`,
    )
    t.equal(
      series.body.data.reduce((sum: number, point: { requests: number }) => sum + point.requests, 0),
      3,
    )
    const values = await operator.send(
      'GET',
      `/installation/calls/values?period=today&account_id=${account_id}`,
    )
    t.same(
      values.body.models,
      [
        { value: 'fast', calls: 2 },
        { value: 'broken', calls: 1 },
      ],
      'the most frequent first',
    )
    t.match(values.body, {
      statuses: [
        { value: 'success', calls: 2 },
        { value: 'error', calls: 1 },
      ],
      error_codes: [{ value: String, calls: 1 }],
      keys: [
        { name: 'theirs', calls: 2 },
        { name: 'mine', calls: 1 },
      ],
    })
    for (const path of ['calls', 'calls/values'])
      t.match(await owner.send('GET', `/installation/${path}`), { status: 403 })
  })
})
