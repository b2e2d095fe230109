/**
 * The operator's cost of calls and the margins by call, channel, model and customer are exact, and no response to a
 * customer contains them. The channels of this test bill chat in credits per token.
 */

import t from 'tap'
import type { z } from 'zod'
import { logRow } from '../../../schemas/call-log/columns.ts'
import { logDetail } from '../../../schemas/call-log/detail.ts'
import { callCosts } from '../../../schemas/management/calls/calls.ts'
import { margins } from '../../../schemas/management/calls/usage.ts'
import { OPERATIONS } from '../../../schemas/management/index.ts'
import type { Operation } from '../../../schemas/management/operation.ts'
import { startReceiver } from '../../pipelines/notifications/support.ts'
import { eventually, until } from '../../support/eventually.ts'
import { borrowService } from '../../support/lend-services.ts'
import { MANAGE, signIn } from '../../support/manage.ts'
import { ask, type ChannelPlan, configOf, simulated } from '../protocols/support.ts'
import { post, rowOf, traceOf, UPSTREAM_KEY } from '../support.ts'

/** A service is lent to several tests: channels and models are this one's alone. */
const named = (name: string): string => `${name}-${process.pid}`
const [SOLD, LOST, FREE, PAINT] = [named('sold'), named('lost'), named('free'), named('paint')]
const [MAIN, SPARE, OPEN, PAINTER] = [named('main'), named('spare'), named('open'), named('painter')]
const MEANT = 'sim-m@prompt_tokens=100,tokens=10'

const chat = (id: string, models: Record<string, string>, more: Partial<ChannelPlan> = {}): ChannelPlan =>
  simulated('chat-completions', models, { id, ...more })

const CONFIG = configOf(
  {
    [SOLD]: {},
    [LOST]: {},
    [FREE]: {},
    [PAINT]: { endpoint_type: 'images_generations', pricing: { unit: 'image', per_unit: '7' } },
  },
  [
    chat(
      MAIN,
      { [SOLD]: MEANT, [LOST]: 'sim-m@fault=status:500' },
      {
        cost: {
          [SOLD]: { unit: '1M_tokens', input: '400000', output: '900000' },
          [LOST]: { unit: '1M_tokens', input: '400000', output: '900000' },
        },
      },
    ),
    chat(
      SPARE,
      { [LOST]: MEANT },
      {
        priority: 1,
        cost: { [LOST]: { unit: '1M_tokens', input: '1500000', output: '0.00000001' } },
      },
    ),
    chat(OPEN, { [FREE]: MEANT }),
    {
      id: PAINTER,
      protocol: 'openai-images',
      base_url: '${TEST_SIMULATOR_URL}/v1',
      api_key: UPSTREAM_KEY,
      models: { [PAINT]: 'sim-image' },
      cost: { [PAINT]: { unit: 'image', per_unit: '2.5' } },
    },
  ],
  { webhooks: { private_addresses: true } },
)

/** Names of fields for operators alone, in answers and in code. */
const SECRETS = Object.keys({ ...callCosts.shape, ...margins }).flatMap((name) => [
  name,
  name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
])
const SECRET = new RegExp(SECRETS.map((name) => `\\b${name}\\b`).join('|'))

/** Returns the operations that someone with a role in an account may read, without an id of a thing. */
const readable = (role: 'owner' | 'member'): Operation[] =>
  OPERATIONS.filter(
    ({ method, allows, path }) =>
      method === 'GET' &&
      allows !== 'operators' &&
      (!Array.isArray(allows) || allows.includes(role)) &&
      !/\{|\/live$/.test(path),
  )

t.test('costs', async (t) => {
  const service = await borrowService(t, CONFIG)
  const operator = await signIn(service, { role: 'operator' })
  const auditor = await signIn(service, { role: 'auditor' })
  const { key, accountId: account } = await service.newKey('10000000')
  const owner = await signIn(service, { accountId: account })
  const live = await watchLive()
  const hooks = await startReceiver(t)
  const { body: hook } = await owner.send('POST', '/webhooks', { account_id: account, url: hooks.url })

  async function watchLive() {
    const leaving = new AbortController()
    const response = await fetch(`${service.baseUrl}${MANAGE}/calls/live?account_id=${account}`, {
      headers: { cookie: owner.cookie },
      signal: leaving.signal,
    })
    t.equal(response.status, 200)
    let text = ''
    const reading = (async () => {
      for await (const piece of response.body!) text += Buffer.from(piece).toString()
    })().catch(() => {})
    const leave = () => {
      leaving.abort()
      return reading
    }
    return { text: () => text, leave }
  }

  const settled = async (model: string, stream: boolean): Promise<number> => {
    const answer = await ask(service, key, 'chat-completions', model, { stream })
    t.equal(answer.status, 200, model)
    await answer.text()
    return (await rowOf(service, key, traceOf(answer))).id
  }
  const ids = {
    whole: await settled(SOLD, false),
    streamed: await settled(SOLD, true),
    retried: await settled(LOST, true),
    unknown: await settled(FREE, false),
    image: await painted(),
  }
  async function painted(): Promise<number> {
    const answer = await post(service, key, '/v1/images/generations', { model: PAINT, prompt: 'a fox', n: 2 })
    t.equal(answer.status, 200)
    await answer.text()
    return (await rowOf(service, key, traceOf(answer))).id
  }
  const show = async (id: number) => (await operator.send('GET', `/calls/${id}?account_id=${account}`)).body
  const usage = async (by: string) =>
    (await operator.send('GET', `/installation/usage?account_id=${account}&by=${by}&period=today`)).body

  await t.test('of each call, whole, streamed, after a retry, of an image', async (t) => {
    for (const [name, channel_id, cost, upstream_cost, margin] of [
      // 100 x 1 + 10 x 2, less 100 x 0.4 + 10 x 0.9
      ['whole', MAIN, '120', '49', '71'],
      ['streamed', MAIN, '120', '49', '71'],
      // 100 x 1.5 + 10 x 0.00000000000001, rounded
      ['retried', SPARE, '120', '150', '-30'],
      ['unknown', OPEN, '120', null, null],
      // 2 x 7, less 2 x 2.5
      ['image', PAINTER, '14', '5', '9'],
    ] as const)
      t.match(
        await show(ids[name]),
        { call: { cost }, operator: { channel_id, upstream_cost, margin } },
        name,
      )
    t.match((await auditor.send('GET', `/calls/${ids.whole}?account_id=${account}`)).body, {
      operator: { margin: '71' },
    })
  })

  await t.test('summed up by channel, model, customer and day', async (t) => {
    const total = { upstream_cost: '253', margin: '121', requests_with_cost: 4 }
    const all = { requests: 5, cost: '494', ...total }
    t.match(await usage('model'), {
      total: all,
      rows: [
        { model: SOLD, requests: 2, cost: '240', upstream_cost: '98', margin: '142', requests_with_cost: 2 },
        // Equal charges are in the order of their names.
        { model: FREE, cost: '120', upstream_cost: null, margin: null, requests_with_cost: 0 },
        { model: LOST, cost: '120', upstream_cost: '150', margin: '-30' },
        { model: PAINT, cost: '14', upstream_cost: '5', margin: '9' },
      ],
    })
    t.match(await usage('channel'), {
      total: { requests: 4, cost: '374', ...total },
      rows: [
        { channel_id: MAIN, requests: 2, cost: '240', upstream_cost: '98', margin: '142' },
        { channel_id: SPARE, requests: 1, cost: '120', upstream_cost: '150', margin: '-30' },
        { channel_id: PAINTER, requests: 1, cost: '14', upstream_cost: '5', margin: '9' },
      ],
    })
    t.match(await usage('account'), { rows: [{ account_id: account, ...all }], total: all })
    for (const by of ['day', 'key']) t.match(await usage(by), { total: all }, by)
    t.equal((await owner.send('GET', '/installation/usage')).status, 403)
  })

  await t.test('customers read none of it, in any answer', async (t) => {
    const member = await signIn(service)
    const { body: organization } = await owner.send('POST', '/organizations', { name: 'Acme' })
    await owner.send('PUT', `/members/${member.user.accountId}`, {
      account_id: organization.id,
      role: 'member',
    })
    const walk = async (client: typeof owner, role: 'owner' | 'member', accountId: string) => {
      let answered = 0
      for (const { path, input } of readable(role)) {
        const fields = Object.entries({ account_id: accountId, period: 'today', q: SOLD })
        const query = new URLSearchParams(fields.filter(([name]) => name in (input as z.ZodObject).shape))
        const { status, body } = await client.send('GET', `${path}?${query}`)
        if (status === 200) answered++
        t.notMatch(JSON.stringify(body), SECRET, `${role}: GET ${path}`)
      }
      return answered
    }
    t.ok((await walk(owner, 'owner', account)) > 15, 'most are answered')
    await walk(member, 'member', organization.id)
    for (const id of Object.values(ids)) {
      const { status, body } = await owner.send('GET', `/calls/${id}?account_id=${account}`)
      t.equal(status, 200)
      t.equal(body.operator, undefined)
      t.notMatch(JSON.stringify(body), SECRET)
    }
    const get = async (path: string, headers: Record<string, string> = {}) => {
      const response = await fetch(service.baseUrl + path, {
        headers: { authorization: `Bearer ${key}`, ...headers },
      })
      return { status: response.status, text: await response.text() }
    }
    const { text: reference } = await get('/openapi.json')
    const described = JSON.parse(reference) as { paths: Record<string, { get?: unknown }> }
    const paths = Object.entries(described.paths).flatMap(([path, { get: operation }]) =>
      operation !== undefined && /^\/(api\/)?v1/.test(path) ? [path] : [],
    )
    let answered = 0
    for (const path of paths.map((each) => each.replace('/v1/logs/{id}', `/v1/logs/${ids.whole}`))) {
      if (path.includes('{')) continue
      const { status, text } = await get(path)
      if (status === 200) answered++
      t.notMatch(text, SECRET, `GET ${path}`)
    }
    t.ok(answered > 5)
    const sent = await eventually('the webhook of the task', () =>
      hooks.received.find(({ body }) => body.includes('task.succeeded')),
    )
    t.match(sent.body, /"cost":"14"/)
    const { body: list } = await owner.send('GET', `/webhook-deliveries?account_id=${account}`)
    t.ok(list.data.some((one: { endpoint_id: string }) => one.endpoint_id === hook.id))
    for (const { id } of list.data as { id: string }[]) {
      const { body: detail } = await owner.send('GET', `/webhook-deliveries/${id}`)
      t.match(detail.body, /"type":"/)
      t.notMatch(JSON.stringify(detail), SECRET, detail.type)
    }
    for (const { headers, body } of hooks.received) t.notMatch(JSON.stringify([headers, body]), SECRET)
    const csv = await get('/v1/logs?format=csv')
    t.match(csv.text, /request_id/)
    t.notMatch(csv.text, SECRET)
    await until('the live calls', async () => live.text().includes(SOLD))
    t.notMatch(live.text(), SECRET)
    await live.leave()
  })

  await t.test('the reference has it only where operators read', async (t) => {
    const answers = OPERATIONS.filter(({ answer }) => SECRET.test(shapeText(answer)))
    t.ok(answers.some(({ path }) => path === '/installation/usage'))
    const others = answers.filter(({ allows }) => allows !== 'operators')
    t.same(
      others.map(({ path }) => path),
      ['/calls/{id}'],
    )
    for (const shape of [logRow.shape, logDetail.shape]) t.notMatch(Object.keys(shape).join(' '), SECRET)
  })
})

/** Returns the names of all fields of an answer. */
function shapeText(answer: unknown, seen = new Set<unknown>()): string {
  if (typeof answer !== 'object' || answer === null || seen.has(answer)) return ''
  seen.add(answer)
  return Object.entries(answer)
    .map(([name, value]) => `${name} ${shapeText(value, seen)}`)
    .join(' ')
}
