/** A process that delivers notifications until it is killed. */
import { readFileSync } from 'node:fs'
import { openNats } from '../../../src/nats/nats.ts'
import { openDatabase } from '../../../src/postgres/database.ts'
import { deliverNotifications } from '../../../src/server/tasks/deliveries.ts'

/** Its parent is gone: it must not outlive the test. */
const MAX_LIFE_MS = 900_000
setTimeout(() => process.exit(3), MAX_LIFE_MS)

const { databaseUrl, natsUrl, masterKey } = JSON.parse(readFileSync(process.argv[2]!, 'utf8'))
const log = { info() {}, warn() {}, error() {} }
const database = await openDatabase({ url: databaseUrl, masterKey: Buffer.from(masterKey, 'base64') })
const nats = openNats({ url: natsUrl, name: 'delivering child', log })
deliverNotifications({
  boot: { mail: null, publicUrl: 'http://gateway.test' } as never,
  database,
  nats,
  configuration: { current: () => ({ config: { webhooks: { private_addresses: true } } }) as never },
  log: log as never,
})
