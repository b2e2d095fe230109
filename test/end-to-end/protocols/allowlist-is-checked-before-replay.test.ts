/** A key gets no stored answer of a model that it may not call. See docs/failure-modes.md, "Money", row 28. */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { eventually } from '../../support/service.ts'
import { ask, CHAT_PROTOCOLS, checkRefused, configOf, ERRORS, simulated } from './support.ts'

t.test('an answer is replayed to those keys of the account alone that may call its model', async (t) => {
  const models = Object.fromEntries(CHAT_PROTOCOLS.map((id) => [id, {}]))
  const channels = CHAT_PROTOCOLS.map((protocol) => simulated(protocol, { [protocol]: 'sim-plain@tokens=5' }))
  const service = await borrowService(t, configOf({ ...models, other: {} }, channels))
  const { key, keyId, accountId } = await service.newKey('1000000')
  const keyFor = (allowedModels: readonly string[] | null) =>
    service.database.keys.create({ name: 'narrow', accountId, allowedModels })
  const [none, other, both] = [await keyFor([]), await keyFor(['other']), await keyFor([...CHAT_PROTOCOLS])]

  for (const protocol of CHAT_PROTOCOLS)
    for (const stream of [false, true]) {
      const headers = { 'idempotency-key': `intent-${protocol}-${stream}` }
      const call = (raw: string) => ask(service, raw, protocol, protocol, { stream, headers })
      const first = await call(key)
      const text = await first.text()
      t.equal(first.status, 200)
      for (const { raw } of [none, other])
        await checkRefused(t, await call(raw), protocol, ERRORS.modelNotAllowed)
      const replay = await call(both.raw)
      t.equal(replay.headers.get('idempotency-replayed'), 'true')
      t.equal(await replay.text(), text)
    }

  // The very key that was answered, once it may no more.
  await service.database.keys.update(keyId, { allowedModels: ['other'] })
  const headers = { 'idempotency-key': 'intent-messages-true' }
  const last = await eventually('the change is known', async () => {
    const response = await ask(service, key, 'messages', 'messages', { stream: true, headers })
    return response.status === 400 ? response : undefined
  })
  await checkRefused(t, last, 'messages', ERRORS.modelNotAllowed)
})
