import { fileURLToPath } from 'node:url'
import { type Cores, startChild } from './children.ts'
import { nextMessage } from './wait.ts'

/**
 * How far apart two cores are: nanoseconds until a word that one writes has been answered by the other. Null where
 * that is not known: one of them was kept busy, or the run is not pinned to cores.
 *
 * The host of a virtual machine moves its cores as it likes. Now they share a cache, now what one writes reaches the
 * other from chip to chip. A proxy and its load meet in the kernel's sockets, so the kernel takes two or three times
 * as long for the same instructions; figures of two such moments cannot be compared.
 */
export type CoreDistance = () => Promise<number | null>

/** Where two cores are to each other: `near` share a cache, `far` do not. */
export type Place = 'near' | 'far'

/** Round trips were 50 to 130 ns on one chip, 470 to 600 between two. */
export const FAR_FROM_NS = 300

export const placeOf = (roundTripNs: number): Place => (roundTripNs < FAR_FROM_NS ? 'near' : 'far')

const PROGRAM = fileURLToPath(new URL('cache-line-echo.ts', import.meta.url))

/** Starts what measures it: a process with a thread on each core, both asleep until they are asked. */
export const startCoreDistance = async ({ subject, rest }: Cores): Promise<CoreDistance> => {
  const child = await startChild('the echo between cores', process.execPath, [PROGRAM, String(rest)], {
    core: subject,
    messages: true,
  })
  await nextMessage(child)
  return async () => {
    if (child.ended()) throw new Error(`${child.name} has ended: ${child.lastWords()}`)
    const answer = nextMessage<number | null>(child)
    child.process.send('measure')
    return answer
  }
}
