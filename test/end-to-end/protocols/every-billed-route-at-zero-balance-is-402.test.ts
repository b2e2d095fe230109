/** Every billed route is 402 at a zero balance. See docs/failure-modes.md, "Money", row 27. */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { balanceOf, post, upstreamCalls } from '../support.ts'
import {
  ask,
  CHAT_PROTOCOLS,
  type ChatProtocol,
  checkRefused,
  configOf,
  ERRORS,
  simulated,
  WAYS,
} from './support.ts'

/** More prompt tokens than anyone would estimate, at 1 credit each. */
const UPSTREAM_MODEL = 'sim-plain@tokens=5,prompt_tokens=100000'
const CREDIT = '70000'
/** Every way in, also those on which bytes only pass through. */
const CONVERTED: readonly ChatProtocol[] = ['messages', 'generate-content', 'responses']

const headersFor = (key: string): Record<string, string>[] => [{}, { 'idempotency-key': key }]

t.test('with an empty wallet', async (t) => {
  const service = await borrowService(
    t,
    configOf({ ...Object.fromEntries(CHAT_PROTOCOLS.map((id) => [id, {}])), converted: {} }, [
      ...CHAT_PROTOCOLS.map((protocol) => simulated(protocol, { [protocol]: UPSTREAM_MODEL })),
      simulated(
        'chat-completions',
        { converted: UPSTREAM_MODEL },
        { id: 'converting', converts: [...CONVERTED] },
      ),
    ]),
  )
  const ways: readonly (readonly [client: ChatProtocol, model: string])[] = [
    ...WAYS,
    ...CONVERTED.map((protocol) => [protocol, 'converted'] as const),
  ]

  await t.test('every billed route is 402, and no upstream is called', async (t) => {
    const { key } = await service.newKey('0')
    for (const [client, model] of ways)
      for (const stream of [false, true])
        for (const headers of headersFor(`${client}-${model}-${stream}`)) {
          const response = await ask(service, key, client, model, { stream, headers })
          await checkRefused(t, response, client, ERRORS.quotaExceeded)
        }
    // Before anything of the request is read.
    await checkRefused(t, await post(service, key, '/v1/messages', '{'), 'messages', ERRORS.quotaExceeded)
    t.same(await upstreamCalls(service), [])
    const count = 4 * ways.length + 1
    const rows = await service.logs(key, (found) => found.length >= count)
    t.equal(rows.length, count)
    for (const row of rows) t.match(row, { status: 'rejected', error_code: 'quota_exceeded', cost: '0' })
  })

  await t.test('so it is with one that a call has emptied', async (t) => {
    for (const [client, model] of ways) {
      const { key } = await service.newKey(CREDIT)
      const call = (intent: string) =>
        ask(service, key, client, model, { stream: true, headers: { 'idempotency-key': intent } })
      const paid = await call('paid')
      const text = await paid.text()
      t.equal(paid.status, 200)
      await checkRefused(t, await ask(service, key, client, model), client, ERRORS.quotaExceeded)
      await checkRefused(t, await call('another'), client, ERRORS.quotaExceeded)
      const again = await call('paid')
      t.equal(again.status, 200, 'what is paid can be had again')
      t.equal(again.headers.get('idempotency-replayed'), 'true')
      t.equal(await again.text(), text)
      t.match((await balanceOf(service, key)).remaining, /^-/)
    }
  })

  await t.test('what is free is not refused', async (t) => {
    const { key } = await service.newKey('0')
    for (const path of ['/v1/models', '/v1/key/balance', '/v1/logs', '/api/v1/usage'])
      t.equal((await service.get(key, path)).status, 200, path)
  })
})
