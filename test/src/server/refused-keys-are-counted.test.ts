import t from 'tap'
import { AUTH_MESSAGES } from '../../../schemas/failure.ts'
import { addressPrefix } from '../../../src/core/keys/address-prefix.ts'
import { failedAuthentications, LOG_INTERVAL_MS } from '../../../src/server/gateway/failed-authentications.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'

const HOUR_MS = 3_600_000

t.test('each is counted by its reason, and a line now and then says from where', async (t) => {
  const metrics = createMetrics('0')
  const lines: object[] = []
  let now = 0
  const refused = failedAuthentications({
    count: metrics.unauthenticated,
    log: { warn: (details) => void lines.push(details) },
    now: () => now,
  })
  for (let at = 0; at < 5; at++) refused(AUTH_MESSAGES.invalid, () => `203.0.113.${at}`)
  refused(AUTH_MESSAGES.revoked, () => '203.0.113.9')
  now += LOG_INTERVAL_MS
  refused('The metrics token is missing or wrong.', () => '2001:db8:1:2::3')
  const text = await metrics.text()
  for (const [reason, count] of Object.entries({ invalid: 5, revoked: 1, other: 1 }))
    t.ok(text.includes(`tollgate_authentication_failures_total{reason="${reason}"} ${count}\n`), reason)
  t.same(lines, [
    { reason: 'invalid', address_prefix: '203.0.113.0/24', refused: 1 },
    { reason: 'other', address_prefix: '2001:db8:1::/48', refused: 6 },
  ])
})

t.test('a clock that is set back by an hour does not silence the log', async (t) => {
  let lines = 0
  let now = 2 * HOUR_MS
  const refused = failedAuthentications({
    count: () => undefined,
    log: { warn: () => void lines++ },
    now: () => now,
  })
  refused(AUTH_MESSAGES.invalid, () => '203.0.113.1')
  now -= HOUR_MS
  refused(AUTH_MESSAGES.invalid, () => '203.0.113.1')
  t.equal(lines, 2)
})

t.test('calls that the reservations of all processes refuse are counted', async (t) => {
  const metrics = createMetrics('0')
  for (const reason of ['wallet', 'spend_cap', 'wallet'] as const) metrics.reservationRefused(reason)
  const text = await metrics.text()
  t.match(text, 'tollgate_reservation_refusals_total{reason="wallet"} 2\n')
  t.match(text, 'tollgate_reservation_refusals_total{reason="spend_cap"} 1\n')
})

t.test('networks', (t) => {
  const NETWORKS = {
    '10.1.2.3': '10.1.2.0/24',
    '::ffff:10.1.2.3': '10.1.2.0/24',
    '0000:0000:0000:0000:0000:ffff:7f00:0001': '127.0.0.0/24',
    '2001:0db8:0001:0002:0003:0004:0005:0006': '2001:db8:1::/48',
    '::1': '0:0:0::/48',
    '': '',
    unknown: '',
    '1:2:3': '',
  }
  for (const [address, network] of Object.entries(NETWORKS)) t.equal(addressPrefix(address), network, address)
  t.end()
})
