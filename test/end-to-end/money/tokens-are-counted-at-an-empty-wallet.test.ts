/** Counting tokens is free: it works at a balance of zero, and below. */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { configOf, simulated } from '../protocols/support.ts'
import { balanceOf, post, say } from '../support.ts'

const models = { counted: 'sim-m' }
const config = configOf({ counted: {} }, [
  simulated('messages', models),
  simulated('generate-content', models),
])

t.test('tokens are counted at a balance of zero and below', async (t) => {
  const service = await borrowService(t, config)
  const empty = await service.newKey('0')
  const overdrawn = await service.newKey('1')
  await service.database.wallets.adjust(overdrawn.accountId, -3_00000000n, { reason: 'a test' })
  for (const { key } of [empty, overdrawn]) {
    t.match(await balanceOf(service, key), { remaining: key === empty.key ? '0' : '-2' })
    const message = { model: 'counted', messages: say('hi') }
    const ofMessages = await post(service, key, '/v1/messages/count_tokens', message)
    t.equal(ofMessages.status, 200)
    t.match(await ofMessages.json(), { input_tokens: Number })
    const contents = [{ role: 'user', parts: [{ text: 'hi' }] }]
    const ofContents = await post(service, key, '/v1beta/models/counted:countTokens', { contents })
    t.equal(ofContents.status, 200)
    t.match(await ofContents.json(), { totalTokens: Number })
    t.equal((await post(service, key, '/v1/messages', { ...message, max_tokens: 5 })).status, 402)
  }
})
