/** The session that a client names: in the rows of its calls and tasks, whatever becomes of them, and summed up. */
import t from 'tap'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import { answerOf, tollgate } from '../../src/cli/support.ts'
import { signIn } from '../../support/manage.ts'
import { commandEnv, type LogJson, startService, until } from '../../support/service.ts'
import { childrenOf } from '../chaos/processes.ts'
import { demonstration } from '../media/support.ts'
import { post, readUntil, say, traceOf } from '../support.ts'

interface Row extends LogJson {
  readonly session_id: string | null
}

t.test('calls of a session', async (t) => {
  const service = await startService(t, { config: demonstration(), env: { TOLLGATE_WORKERS: '1' } })
  const { accountId, key } = await service.newKey('1000')
  const operator = await signIn(service, { role: 'operator' })
  const call = async (model: string, headers: Record<string, string>, by = key) => {
    const response = await service.chat(by, { model, messages: say('hi'), max_tokens: 2 }, { headers })
    await response.arrayBuffer()
    return response.status
  }
  const rows = async (query: string, by = key) => {
    const answer = await service.get(by, `/v1/logs?${query}`)
    return ((await answer.json()) as { data: Row[] }).data
  }

  await t.test('rows have it, are found by it and summed up by it', async (t) => {
    t.equal(await call('demo-chat', { 'x-session-id': 'run 7', 'session-id': 'run 8' }), 200)
    t.equal(await call('demo-chat', { 'x-claude-code-session-id': 'run 7' }), 200)
    t.equal(await call('nothing', { session_id: 'run 7' }), 400)
    t.equal(await call('demo-chat', { session_id: 'x'.repeat(129) }), 200)
    t.equal(await call('demo-chat', {}), 200)
    await service.logs(key, (found) => found.length === 5)
    t.same(
      (await rows('')).map((row) => row.session_id).sort(),
      [null, null, 'run 7', 'run 7', 'run 8'].sort(),
    )
    t.same(
      (await rows('session_id=run%207')).map(({ status }) => status),
      ['rejected', 'success'],
    )
    t.equal((await service.get(key, '/v1/logs/summary?session_id=run%207')).status, 400)
    const sums = await operator.send('GET', `/usage/sessions?account_id=${accountId}&period=7d`)
    t.equal(sums.status, 200)
    t.match(sums.body, {
      has_more: false,
      data: [
        { session_id: 'run 7', models: ['demo-chat'], requests: 2 },
        { session_id: 'run 8', models: ['demo-chat'], requests: 1 },
      ],
    })
    const sessions = ['logs', 'sessions', accountId, '--period', '7d']
    t.same(await answerOf(sessions, commandEnv(service)), sums.body.data, 'the command shows the same')
    const { stdout } = await tollgate(sessions, commandEnv(service))
    t.match(stdout, /^session_id +models .*\nrun 7 +demo-chat +2 .*\nrun 8 +demo-chat +1 /)
    const none = ['logs', 'sessions', 'acc_none']
    t.match(await tollgate(none, commandEnv(service)), { code: 1, stderr: /There is no account acc_none/ })
    for (const path of ['/usage', '/usage/sessions'])
      t.match(await operator.send('GET', `${path}?account_id=acc_none`), { status: 404 }, path)
    const first = await operator.send('GET', `/usage/sessions?account_id=${accountId}&limit=1`)
    t.match(first.body, { has_more: true, data: [{ session_id: 'run 7' }] })
  })

  await t.test('the row of a task has the session of its request', async (t) => {
    const video = { model: 'demo-video', prompt: 'a kite', duration: 4 }
    const response = await post(service, key, '/v1/videos/generations', video, { 'x-session-id': 'film' })
    t.equal(response.status, 200, await response.text())
    const ref = `&ref=${traceOf(response)}`
    const [row] = await service.logs(key, (found) => found[0]?.status === 'success', ref)
    t.match(row, { session_id: 'film', unit_type: 'video', task_id: /^vid_/ })
  })

  await t.test('a call whose gateway is killed has its session', async (t) => {
    const body = { model: 'demo-slow', messages: say('hi'), stream: true }
    const response = await service.chat(key, body, { headers: { 'x-opencode-session': 'cut' } })
    const [gateway] = childrenOf(service.pid(), 'gateway')
    await readUntil(response, (bytes) => {
      if (bytes.includes('data: ')) process.kill(gateway!, 'SIGKILL')
      return false
    })
    await until('another gateway answers', () =>
      fetch(`${service.baseUrl}/health`).then(
        () => true,
        () => false,
      ),
    )
    const [row] = await service.logs(key, (found) => found.length > 0, `&ref=${traceOf(response)}`)
    t.match(row, { status: 'interrupted', session_id: 'cut' })
  })

  await t.test('a member of an organization sees the sessions of their keys alone', async (t) => {
    const [owner, member] = [await signIn(service), await signIn(service)]
    const { accounts, organizations } = service.database
    const { account } = await accounts.create({ name: 'Acme', kind: 'organization', credit: ONE_CREDIT })
    const account_id = account.id
    await organizations.putMember(account_id, owner.user.accountId, 'owner')
    await organizations.putMember(account_id, member.user.accountId, 'member')
    const { body: theirs } = await owner.send('POST', '/keys', { account_id, name: 'theirs' })
    const { body: asked } = await member.send('POST', '/key-requests', { account_id, name: 'mine' })
    const { body: mine } = await owner.send('POST', `/key-requests/${asked.id}/approve`, {
      account_id,
      spend_cap: '5',
    })
    t.equal(await call('demo-chat', { 'x-session-id': 'of the owner' }, theirs.key), 200)
    const { body: revealed } = await member.send('POST', `/keys/${mine.id}/reveal`, {})
    t.equal(await call('demo-chat', { 'x-session-id': 'of the member' }, revealed.key), 200)
    const sessions = (by: typeof owner, keyId?: string) =>
      by.send(
        'GET',
        `/usage/sessions?account_id=${account_id}${keyId === undefined ? '' : `&key_id=${keyId}`}`,
      )
    await until('both calls are logged', async () => (await sessions(owner)).body.data.length === 2)
    const own = [{ session_id: 'of the member' }]
    t.match(await sessions(member), { status: 200, body: { data: own } }, 'those of all of their keys')
    t.equal((await sessions(member)).body.data.length, 1)
    t.match(await sessions(member, theirs.id), { status: 403 })
    t.match(await sessions(member, mine.id), {
      status: 200,
      body: { data: [{ session_id: 'of the member' }] },
    })
    t.match(await sessions(await signIn(service)), { status: 404 }, 'a stranger')
  })
})
