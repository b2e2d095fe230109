/** A stored secret or mail that the master key does not open: its own delivery fails, and says why. */
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { generateMasterKey } from '../../../src/core/keys/material.ts'
import { openMail } from '../../../src/mail/mail.ts'
import { openDatabase } from '../../../src/postgres/database.ts'
import { eventually } from '../../support/eventually.ts'
import { startMailServer } from '../../support/mail-server.ts'
import { startNotifications, startReceiver } from './support.ts'

const bench = await startNotifications(t)
const { database, sql } = bench
const server = await startMailServer(t)
const mail = openMail({ url: server.url, from: 'noreply@example.com', publicUrl: 'https://gateway.example' })
t.teardown(() => mail.close())

/** The delivery of an account or an address, once it had so many attempts. */
const deliveryOf = (subject: string, tries: number) =>
  eventually(`${tries} attempts for ${subject}`, async () => {
    const [row] = await sql`
      SELECT d.*, w.failing_since FROM deliveries AS d
      LEFT JOIN events AS e ON e.id = d.event_id LEFT JOIN webhook_endpoints AS w ON w.id = d.endpoint_id
      WHERE coalesce(d.address, e.account_id) = ${subject} AND d.tries = ${tries}`
    return row
  })

/** An account with an endpoint, and an event for it. */
async function newReceiver(url: string) {
  const accountId = await bench.newAccount()
  return { accountId, ...(await bench.newEndpoint(accountId, url)) }
}

const sendMail = (address: string) =>
  database.deliveries.sendMail(address, {
    mail: 'recovery',
    locale: 'en',
    values: {},
    link: 'https://gateway.example/',
  })

t.test('the delivery fails, and is tried again; others of its batch are made', async (t) => {
  const { url, received } = await startReceiver(t)
  const broken = await newReceiver(url)
  const whole = await newReceiver(url)
  await sql`
    UPDATE webhook_endpoints SET sealed_secret = (SELECT sealed_secret FROM webhook_endpoints WHERE id = ${whole.id})
    WHERE id = ${broken.id}`
  for (const address of ['broken@example.com', 'whole@example.com']) await sendMail(address)
  await sql`
    UPDATE deliveries SET sealed_mail = (SELECT sealed_mail FROM deliveries WHERE address = 'whole@example.com')
    WHERE address = 'broken@example.com'`
  for (const { accountId } of [broken, whole]) await bench.record(accountId)
  const logged: string[] = []
  const log = { info() {}, warn() {}, error: (_: object, message: string) => void logged.push(message) }
  bench.worker(t, { mail, log })

  t.match(await deliveryOf(whole.accountId, 1), { state: 'delivered' })
  t.match(await deliveryOf('whole@example.com', 1), { state: 'delivered' })
  t.match(await deliveryOf(broken.accountId, 1), {
    state: 'waiting',
    attempts: [{ status: null, error: 'The stored secret of the endpoint cannot be read. Replace it.' }],
    failing_since: Date,
  })
  t.match(await deliveryOf('broken@example.com', 1), {
    state: 'waiting',
    attempts: [{ status: null, error: 'The stored mail cannot be read.' }],
  })
  t.match(logged[0], 'Stored secrets or mails of deliveries do not open')
  t.equal(received.length, 1)

  await database.webhooks.rotateSecret(broken.id)
  await sql`UPDATE deliveries SET due_at = now() WHERE state = 'waiting'`
  t.match(await deliveryOf(broken.accountId, 2), { state: 'delivered' }, 'the former secret is left out')
})

t.test('a process with a former master key makes no attempt', async (t) => {
  const { url, received } = await startReceiver(t)
  const { accountId } = await newReceiver(url)
  const next = generateMasterKey()
  // A rotation of the master key ends at what it cannot seal again.
  const mended = await sql`DELETE FROM deliveries WHERE address = 'broken@example.com' RETURNING id`
  t.equal(mended.length, 1)
  await sql`UPDATE webhook_endpoints SET sealed_former_secret = NULL`
  await database.masterKey.rotate(next)
  await bench.record(accountId)
  const warned = Promise.withResolvers<string>()
  const log = { info() {}, error() {}, warn: (_: object, message: string) => warned.resolve(message) }
  bench.worker(t, { log })
  t.equal(await warned.promise, 'Delivering notifications fails; retrying')
  await pause(100)
  t.match(await deliveryOf(accountId, 0), { attempts: { length: 0 }, failing_since: null })

  const current = await openDatabase({ url: bench.serviceUrl, masterKey: next })
  t.teardown(() => current.close())
  bench.worker(t, { database: current })
  t.match(await deliveryOf(accountId, 1), { state: 'delivered' })
  t.equal(received.length, 1)
})
