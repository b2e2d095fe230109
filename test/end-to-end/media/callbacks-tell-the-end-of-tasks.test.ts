/** `callback_url` on every request that makes media, and webhooks by the management API. */
import { Webhook } from 'standardwebhooks'
import t from 'tap'
import { startReceiver } from '../../pipelines/notifications/support.ts'
import { eventually, until } from '../../support/eventually.ts'
import { borrowService } from '../../support/lend-services.ts'
import { signIn } from '../../support/manage.ts'
import { demonstration, newClient } from './support.ts'

const SIMULATED = '[simulate: delay=100,queue=20,seconds=4]'
const LINK = 'https://files.example.com/source.mp4'

/** A submit of each endpoint that makes tasks. */
const SUBMITS: readonly (readonly [string, object])[] = [
  ['/v1/images/generations', { model: 'demo-image', prompt: `A fox ${SIMULATED}`, async: true }],
  ['/v1/images/edits', { model: 'demo-image', prompt: `A fox ${SIMULATED}`, image: LINK, async: true }],
  ['/v1/videos/generations', { model: 'demo-video', prompt: `A fox ${SIMULATED}`, duration: 6 }],
  ['/v1/videos/generations', { model: 'dh-lipsync', source_video_url: LINK, audio_url: LINK, duration: 5 }],
  ['/v1/videos/avatars', { name: 'Ada', source_url: LINK }],
  ['/v1/videos/clip-subtitles', { video_url: LINK, async: true }],
  ['/v1/music/generations', { model: 'demo-music', prompt: 'A song' }],
  ['/v1/audio/speech', { model: 'voice-tts-pro', input: 'Hello', async: true }],
  ['/v1/audio/voices', { name: 'Ada', audio_url: LINK, async: true }],
  ['/v1/transcripts/extract', { url: 'https://video.example.com/1' }],
  ['/v1/responses', { model: 'sonata-small', input: 'A joke', background: true, max_output_tokens: 20 }],
]

t.test('receivers that are the operator’s own', async (t) => {
  const service = await borrowService(
    t,
    demonstration(
      (yaml) =>
        `webhooks: { private_addresses: true }\n${yaml.replace('protocol: responses\n', 'protocol: responses\n    keeps_responses_days: 30\n')}`,
    ),
  )
  const client = await newClient(service, '5000')
  const account_id = client.accountId
  const owner = await signIn(service, { accountId: account_id })
  const receiver = await startReceiver(t)
  const hooks = await startReceiver(t)
  const { body: made } = await owner.send('POST', '/webhooks', {
    account_id,
    url: hooks.url,
    events: ['task.succeeded', 'task.failed'],
  })
  const { body: revealed } = await owner.send('POST', '/callback-secret/reveal', { account_id })
  t.match(revealed.secret, /^whsec_/)

  await t.test('each submit takes one, and it gets the end once', async (t) => {
    for (const [index, [path, body]] of SUBMITS.entries()) {
      const callback_url = `${receiver.url}/${index}`
      const answer = await client.post(path, { ...body, callback_url })
      t.ok(answer.status < 300, `${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
      t.notOk('callback_url' in answer.body)
      const hook = await eventually(`the callback of ${path}`, () =>
        receiver.received.find((one) => one.path === `/hook/${index}`),
      )
      const event = new Webhook(revealed.secret).verify(hook.body, hook.headers) as {
        type: string
        data: Record<string, unknown>
      }
      t.match(event.type, /^task\.(succeeded|failed)$/)
      t.equal(event.data.request_id, answer.trace, path)
      if (typeof answer.body.id === 'string')
        t.equal(event.data.response_id ?? event.data.task_id, answer.body.id)
      const same = await eventually('the webhook of the account', () =>
        hooks.received.find(({ headers }) => headers['webhook-id'] === hook.headers['webhook-id']),
      )
      t.ok(new Webhook(made.secret).verify(same.body, same.headers))
    }
    t.equal(receiver.received.length, SUBMITS.length)
  })

  await t.test('the first one makes the secret of its account, in the name of its key', async (t) => {
    const first = await newClient(service, '5000')
    const [path, body] = ['/v1/transcripts/extract', { url: 'https://video.example.com/1' }]
    for (const name of ['first', 'second'])
      t.equal((await first.post(path, { ...body, callback_url: `${receiver.url}/${name}` })).status, 200)
    const acts = await service.database.auditRecord.list({
      accountId: first.accountId,
      action: 'webhook.',
      limit: 10,
    })
    const [key] = await service.database.keys.list(first.accountId)
    t.same(
      acts.map(({ actor, action }) => ({ actor, action })),
      [{ actor: `key:${key?.id}`, action: 'webhook.create' }],
    )
  })

  await t.test('deliveries are listed with request and answer, and replayed', async (t) => {
    const { body: list } = await owner.send('GET', `/webhook-deliveries?account_id=${account_id}&limit=2`)
    t.match(list, { has_more: true, data: [{ state: 'delivered', last_status: 200 }, {}] })
    const next = await owner.send(
      'GET',
      `/webhook-deliveries?account_id=${account_id}&endpoint_id=${made.id}&state=delivered&cursor=${list.next_cursor}`,
    )
    t.ok(next.body.data.every((one: { endpoint_id: string }) => one.endpoint_id === made.id))
    const { id, event_id } = next.body.data[0]
    const { body: detail } = await owner.send('GET', `/webhook-deliveries/${id}`)
    t.match(detail, {
      body: /"type":"task\./,
      attempts_made: [{ status: 200, answer: 'thanks', headers: { 'webhook-id': event_id } }],
    })
    const before = hooks.received.length
    t.match(await owner.send('POST', `/webhook-deliveries/${id}/replay`, {}), { status: 200 })
    await until('it comes again', () => hooks.received.length > before)
    t.equal(hooks.received.at(-1)!.headers['webhook-id'], event_id)
  })

  await t.test('an endpoint is tested, rotated, switched off and deleted', async (t) => {
    const count = hooks.received.length
    t.match(await owner.send('POST', `/webhooks/${made.id}/test`, {}), {
      status: 201,
      body: { type: 'webhook.test', state: 'waiting' },
    })
    await until('the test', () => hooks.received.length > count)
    const { body: rotated } = await owner.send('POST', `/webhooks/${made.id}/rotate`, {})
    t.not(rotated.secret, made.secret)
    t.ok(rotated.former_secret_until)
    const path = `/webhooks/${made.id}`
    t.match(await owner.send('PATCH', path, { enabled: false }), { body: { enabled: false, url: hooks.url } })
    t.match(await owner.send('POST', `${path}/test`, {}), { status: 409 })
    t.match(await owner.send('PATCH', path, { events: ['channel.opened'] }), { status: 400 })
    const audit = await service.database.auditRecord.list({ subjectId: made.id, limit: 10 })
    t.same(
      audit.map(({ action }) => action),
      ['webhook.disable', 'webhook.update', 'webhook.test', 'webhook.create'],
    )
    t.notMatch(JSON.stringify(audit.map(({ before, after }) => [before, after])), /whsec_|sealed/)
    t.match(await owner.send('DELETE', path), { body: { deleted: true } })
    t.match(await owner.send('GET', path), { status: 404 })
  })

  await t.test('thresholds and choices', async (t) => {
    t.match((await owner.send('GET', `/alerts?account_id=${account_id}`)).body, { balance_low: '20' })
    const set = await owner.send('PATCH', '/alerts', { account_id, balance_low: '33.5' })
    t.match(set, { status: 200, body: { balance_low: '33.5' } })
    t.match(await owner.send('PATCH', '/alerts', { account_id, balance_low: '0' }), { status: 400 })
    const choose = await owner.send('PUT', `/me/email-choices/${account_id}`, { events: ['key.revoked'] })
    t.match(choose.body, { is_sent: false, accounts: [{ account_id, events: ['key.revoked'] }] })
    t.match(await owner.send('PUT', '/me/email-choices/installation', { events: ['key.revoked'] }), {
      status: 404,
    })
  })

  await t.test('operators have endpoints of the installation, and others do not', async (t) => {
    const operator = await signIn(service, { role: 'operator' })
    const wanted = { account_id: 'installation', url: hooks.url, events: ['channel.opened'] }
    t.match(await owner.send('POST', '/webhooks', wanted), { status: 404 })
    const { status, body } = await operator.send('POST', '/webhooks', wanted)
    t.equal(status, 201)
    await operator.send('DELETE', `/webhooks/${body.id}`)
  })
})

t.test('addresses that are not public are refused by default', async (t) => {
  const service = await borrowService(t, demonstration())
  const client = await newClient(service, '100')
  const owner = await signIn(service, { accountId: client.accountId })
  for (const callback_url of [
    'http://127.0.0.1:9/',
    'http://localhost/',
    'ftp://example.com/',
    'http://a:b@example.com/',
  ]) {
    const body = { model: 'demo-video', prompt: 'A fox', duration: 6, callback_url }
    const { status, body: refused } = await client.post('/v1/videos/generations', body)
    t.equal(status, 400, callback_url)
    t.match(refused, { error: { code: 'invalid_request' } })
    const made = await owner.send('POST', '/webhooks', { account_id: client.accountId, url: callback_url })
    t.equal(made.status, 400, callback_url)
  }
})
