/** Tasks in the management API, and the search for ids: each caller finds what they may see, and nothing else. */
import t from 'tap'
import { eventually } from '../../support/eventually.ts'
import { borrowService } from '../../support/lend-services.ts'
import { type ManageClient, signIn } from '../../support/manage.ts'
import { demonstration, newClient } from '../media/support.ts'

const VIDEOS = '/v1/videos/generations'

t.test('tasks and search', async (t) => {
  const service = await borrowService(t, demonstration())
  const client = await newClient(service, '100')
  const account_id = client.accountId
  const owner = await signIn(service, { accountId: account_id })
  const stranger = await signIn(service)
  const operator = await signIn(service, { role: 'operator' })
  const make = async () => {
    const prompt = 'A fox [simulate: delay=300,queue=50,seconds=4.5]'
    const { body } = await client.post(VIDEOS, { model: 'demo-video', prompt, duration: 6 })
    await client.ended(`${VIDEOS}/${body.id}`)
    return body.id as string
  }
  const older = await make()
  const newer = await make()

  await t.test('the owner pages through the tasks, without the names of channels', async (t) => {
    const { body: first } = await owner.send('GET', `/tasks?account_id=${account_id}&limit=1`)
    t.match(first, { data: [{ id: newer, state: 'succeeded', account_id }], has_more: true })
    t.notOk('channel_id' in first.data[0])
    const next = `/tasks?account_id=${account_id}&limit=1&cursor=${first.next_cursor}`
    t.match((await owner.send('GET', next)).body, { data: [{ id: older }], has_more: false })
    t.same((await owner.send('GET', `/tasks?account_id=${account_id}&open=true`)).body.data, [])
    const inStates = (states: string) => owner.send('GET', `/tasks?account_id=${account_id}&state=${states}`)
    t.match((await inStates('failed,succeeded')).body.data, { length: 2 })
    t.same((await inStates('failed,expired')).body.data, [])
    t.match(await inStates('failed,done'), { status: 400 })
    t.match(await owner.send('GET', `/tasks?account_id=${account_id}&cursor=eA`), { status: 400 })
    t.match(await owner.send('GET', `/tasks/${older}`), { status: 200, body: { id: older } })
    t.match(await stranger.send('GET', `/tasks/${older}`), { status: 404 })
    t.match(await stranger.send('GET', `/tasks?account_id=${account_id}`), { status: 404 })
  })

  await t.test('operators see the channel of every task', async (t) => {
    const { body } = await operator.send('GET', `/installation/tasks?account_id=${account_id}`)
    t.match(body.data, [
      { id: newer, channel_id: String },
      { id: older, channel_id: String },
    ])
    t.match((await operator.send('GET', `/installation/tasks/${older}`)).body, { upstream_id: String })
    t.match(await owner.send('GET', `/installation/tasks/${older}`), { status: 403 })
  })

  await t.test('a queued task is cancelled by its owner: hold back, with an audit entry', async (t) => {
    const submit = async (directives: string) => {
      const prompt = `A fox [simulate: ${directives}]`
      const { body } = await client.post(VIDEOS, { model: 'demo-video', prompt, duration: 6 })
      const queued = async () =>
        ['queued', 'running'].includes((await owner.send('GET', `/tasks/${body.id}`)).body.state) || undefined
      await eventually(`${body.id} is with its provider`, queued)
      return body.id as string
    }
    const id = await submit('queue=20000')
    const path = `/tasks/${id}/cancel`
    t.match(await stranger.send('POST', path, {}), { status: 404 })
    t.match(await owner.send('POST', path, {}), {
      status: 200,
      body: { id, state: 'cancelled', cost: '0' },
    })
    t.match(await owner.send('POST', path, {}), { status: 409 }, 'once')
    const { body } = await owner.send('GET', `/audit?account_id=${account_id}&action=task`)
    t.match(body.data, [{ action: 'task.cancelled', subject_id: id, actor: `user:${owner.user.id}` }])

    const running = await submit('queue=50,delay=60000')
    t.match(await operator.send('POST', `/installation/tasks/${running}/retry`, {}), { status: 200 })
    t.match(await owner.send('POST', `/installation/tasks/${running}/end`, {}), { status: 403 })
    const end = { as: 'failed', reason: 'The provider lost it.' }
    const ended = await operator.send('POST', `/installation/tasks/${running}/end`, end)
    t.match(ended.body, { state: 'failed', error_message: end.reason, provider: String })
    t.match(await operator.send('POST', `/installation/tasks/${running}/end`, end), { status: 409 })
    t.match(await operator.send('POST', `/installation/tasks/${running}/retry`, {}), { status: 409 })
  })

  await t.test('what a task made is there by a fresh link', async (t) => {
    const { body } = await owner.send('GET', `/tasks/${newer}`)
    t.match(body.files, [{ role: 'video', url: String, expires_at: String }])
    t.equal((await fetch(body.files[0].url)).status, 200)
  })

  await t.test('a refund of a task is in the task and in its call', async (t) => {
    const { body: before } = await owner.send('GET', `/tasks/${newer}`)
    t.equal(before.refund, null)
    const refund = { ref: newer, amount: '1', reason: 'the film was dark' }
    t.match(await operator.send('POST', `/accounts/${account_id}/refunds`, refund), { status: 200 })
    const shown = { amount: '1', reason: refund.reason, created_at: String }
    t.match(await owner.send('GET', `/tasks/${newer}`), { body: { cost: before.cost, refund: shown } })
    t.match((await operator.send('GET', `/installation/tasks/${newer}`)).body.refund, shown)
    const { call } = await service.database.calls.find(newer)
    t.match((await client.get(`/v1/logs/${call!.id}`)).body.refund, shown)
    t.match(await owner.send('POST', `/accounts/${account_id}/refunds`, refund), { status: 403 })
  })

  await t.test('a task whose record was deleted is there for operators alone', async (t) => {
    await service.database.tasks.deleteRecord(account_id, 'video', older, Date.now())
    t.match(await owner.send('GET', `/tasks/${older}`), { status: 404 })
    const { body } = await owner.send('GET', `/tasks?account_id=${account_id}&state=succeeded`)
    t.same(
      body.data.map(({ id }: { id: string }) => id),
      [newer],
    )
    t.match(await operator.send('GET', `/installation/tasks/${older}`), { status: 200 })
  })

  await t.test('an id finds what it names, for those who may see it', async (t) => {
    const found = async (by: ManageClient, q: string) =>
      (await by.send('GET', `/search?q=${q}`)).body.data.map(({ type, id }: { type: string; id: string }) => [
        type,
        id,
      ])
    const [key] = await service.database.keys.list(account_id)
    const { call } = await service.database.calls.find(newer)
    const number = String(call!.id)
    const named = [
      [
        newer,
        [
          ['call', number],
          ['task', newer],
        ],
      ],
      [
        number,
        [
          ['call', number],
          ['task', newer],
        ],
      ],
      [key!.id, [['key', key!.id]]],
      [account_id, [['account', account_id]]],
      [owner.user.id, [['user', owner.user.id]]],
    ] as const
    for (const [q, results] of named) {
      t.same(await found(owner, q), results, q)
      t.same(await found(operator, q), results, q)
      t.same(await found(stranger, q), [], q)
    }
    t.same(await found(operator, 'key_nothing'), [])
  })
})
