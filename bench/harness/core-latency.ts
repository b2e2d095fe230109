import { fileURLToPath } from 'node:url'
import { type Cores, startChild } from './children.ts'
import { nextMessage } from './wait.ts'

/**
 * Measures the round trip of a word between two cores, in nanoseconds. Returns null where it cannot: another process
 * kept one of them busy, or the run is not pinned to cores.
 *
 * The host of a virtual machine moves its cores. Sometimes they share a cache, sometimes a write has to travel between
 * chips. A proxy and its load meet in the kernel's sockets, so the kernel then takes two or three times as long for the
 * same instructions, and figures of the two placements cannot be compared.
 */
export type CoreLatency = () => Promise<number | null>

export type Placement = 'shared cache' | 'separate caches'

/** Round trips were 50 to 130 ns on one chip, 470 to 600 between two. */
export const SHARED_CACHE_BELOW_NS = 300

export const readPlacement = (roundTripNs: number): Placement =>
  roundTripNs < SHARED_CACHE_BELOW_NS ? 'shared cache' : 'separate caches'

const PROGRAM = fileURLToPath(new URL('cache-line-echo.ts', import.meta.url))

/** Starts a process with a thread on each core, both asleep until a measurement. */
export const startCoreLatency = async ({ subject, load }: Cores): Promise<CoreLatency> => {
  const child = await startChild(
    'the core-to-core latency probe',
    process.execPath,
    [PROGRAM, String(load)],
    {
      core: subject,
      messages: true,
    },
  )
  await nextMessage(child)
  return async () => {
    if (child.ended()) throw new Error(`${child.name} has ended: ${child.lastOutput()}`)
    const answer = nextMessage<number | null>(child)
    child.process.send('measure')
    return answer
  }
}
