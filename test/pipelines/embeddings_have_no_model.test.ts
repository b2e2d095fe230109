/** Specification: "no model available; calls return 404 model_not_found"; decisions: a refused call leaves a row. */
import { lastValueFrom } from 'rxjs'
import t from 'tap'
import { embeddings } from '../../pipelines/embeddings.ts'
import type { Caller } from '../../pipelines/stages/authenticate.ts'
import type { Settlement } from '../../schemas/event.ts'

const caller = (body: string) =>
  ({
    exchange: {
      requestId: 'req_01J8Z3N4V9QKX2T5W7Y0ABCDEF',
      path: '/v1/embeddings',
      body: Buffer.from(body),
      submittedAt: Date.now(),
    },
    known: { key: { id: 'key_a' }, account: { id: 'acc_a' } },
  }) as Caller

t.test('whatever is asked, the answer is 404 model_not_found, and a row says so', async (t) => {
  for (const [body, model] of [
    ['{"model":"embed-small","input":"x"}', 'embed-small'],
    ['{"model":7}', ''],
    ['nonsense', ''],
    ['', ''],
  ] as const) {
    const settled: Settlement[] = []
    const refused: Settlement[] = []
    const pipeline = embeddings({
      journal: {
        settle: (ticket, settlement) => settled.push({ ...settlement, channel_id: ticket as null }),
      },
      onRefused: (settlement) => refused.push(settlement),
    })
    const failure = { code: 'model_not_found', status: 404, message: /no model for embeddings/ }
    await t.rejects(lastValueFrom(pipeline(caller(body))), failure, body)
    t.match(settled, [
      {
        model,
        account_id: 'acc_a',
        key_id: 'key_a',
        status: 'rejected',
        error_code: 'model_not_found',
        cost: '0',
        channel_id: null,
      },
    ])
    t.same(refused, settled)
  }
})
