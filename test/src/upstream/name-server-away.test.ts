/** An upstream reached before is reached again while its name cannot be looked up; one never reached is not. */
import dns from 'node:dns'
import t from 'tap'
import { answer, clientFor, replyingServer } from './fixture.ts'
import { getRequest, run } from './recorded-calls.ts'

const realLookup = dns.lookup

function takeNamesAway(): void {
  const failing = (name: string, _options: object, told: (error: Error) => void) => {
    const cause = { code: 'EAI_AGAIN', syscall: 'getaddrinfo' }
    process.nextTick(told, Object.assign(new Error(`getaddrinfo EAI_AGAIN ${name}`), cause))
  }
  dns.lookup = failing as unknown as typeof dns.lookup
}

t.test('no name can be looked up', async (t) => {
  t.teardown(() => {
    dns.lookup = realLookup
  })
  const client = clientFor(t, { maxIdlePerOrigin: 0 })
  const { origin } = await replyingServer(t, () => answer('reached'))
  const named = getRequest({ ...origin, host: 'localhost' })
  t.match(await run(client, named), { body: 'reached' })
  takeNamesAway()
  t.match(await run(client, named), { body: 'reached' })
  const elsewhere = { ...origin, key: 'http://elsewhere', host: 'elsewhere' }
  t.match((await run(client, getRequest(elsewhere))).failure, { kind: 'dns', sent: false })
})
