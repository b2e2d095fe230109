/** A process that begins automatic top-ups over and over, as a task worker does, until it is stopped or killed. */
import { setTimeout as sleep } from 'node:timers/promises'
import { topUpAutomatically } from '../../../pipelines/payments/automatic.ts'
import { computePrice } from '../../../src/core/payments/price.ts'
import { openProvider } from '../../../src/payments/provider.ts'
import { openDatabase } from '../../../src/postgres/database.ts'

const PAUSE_MS = 5

const database = await openDatabase({
  url: process.env.TEST_DATABASE_URL!,
  masterKey: Buffer.from(process.env.TEST_MASTER_KEY!, 'base64'),
  maxConnections: 2,
})
const apiUrl = process.env.TEST_API_URL!
const deps = {
  database,
  provider: await openProvider({ secretKey: 'sk_test_shop', webhookSecrets: [], apiUrl }),
  log: { info() {}, warn() {}, error() {} },
  publicUrl: 'https://gateway.example.com',
  computePrice: (credits: bigint) =>
    computePrice(credits, { currency: 'usd', credits_per_unit: 10_000_000_000n }),
}
let isStopped = false
process.once('message', () => {
  isStopped = true
})
process.once('disconnect', () => process.exit(1))
process.send?.('ready')
while (!isStopped) {
  await topUpAutomatically(deps)
  await sleep(PAUSE_MS)
}
await database.close()
process.exit(0)
