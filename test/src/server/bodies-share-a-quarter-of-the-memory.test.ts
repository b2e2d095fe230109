/** The default of `server.max_buffered_mib`: the gateway processes share a quarter of the memory. */
import { totalmem } from 'node:os'
import t from 'tap'
import { configFile } from '../../../schemas/config/file.ts'
import { clientLimits } from '../../../src/server/gateway/client-limits.ts'

const MIB = 1024 * 1024
const HOUR_MS = 3_600_000

/** Returns whether so many bytes of bodies are the most that one gateway process holds. */
function holdsAtMost(bytes: number, gatewayCount: number, maxBufferedMib: number | null = null): boolean {
  const config = configFile.parse({ server: { max_buffered_mib: maxBufferedMib } })
  const refused: string[] = []
  const limits = clientLimits({
    config: () => config,
    gatewayCount,
    count: (reason) => refused.push(reason),
    log: { warn: () => undefined },
  })
  return (
    limits.take(bytes, null) === null &&
    limits.take(1, null)?.code === 'service_unavailable' &&
    refused.join() === 'buffer_full'
  )
}

t.test('a gateway process holds its share of a quarter of the memory', async (t) => {
  const memory = process.constrainedMemory
  let containerBytes = 0
  process.constrainedMemory = () => containerBytes
  t.teardown(() => {
    process.constrainedMemory = memory
  })
  const ofMachine = Math.floor(totalmem() / 4)
  t.ok(holdsAtMost(ofMachine, 1), 'no container')
  containerBytes = 2 ** 64
  t.ok(holdsAtMost(ofMachine, 1), 'a container without a limit')
  containerBytes = 400 * MIB
  t.ok(holdsAtMost(100 * MIB, 1), 'a container')
  t.ok(holdsAtMost(25 * MIB, 4), 'four gateway processes')
  t.ok(holdsAtMost(64 * MIB, 4, 64), 'the configured limit is that of one process')
})

t.test('refusals are logged now and then, also after the clock was set back by an hour', async (t) => {
  let lines = 0
  const config = configFile.parse({ server: { max_buffered_mib: 32 } })
  const limits = clientLimits({
    config: () => config,
    gatewayCount: 1,
    count: () => undefined,
    log: { warn: () => void lines++ },
  })
  const refuse = () => limits.take(64 * MIB, null)
  refuse()
  refuse()
  t.equal(lines, 1)
  const back = Date.now() - HOUR_MS
  t.intercept(Date, 'now', { value: () => back })
  refuse()
  t.equal(lines, 2)
})
