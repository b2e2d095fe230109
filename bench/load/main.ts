import { runCalls } from './calls.ts'
import type { LoadAnswer, LoadOrder } from './generator.ts'
import { Streams } from './streams.ts'

/**
 * The load generator's process. Its clients use `node:net` directly, so that they cost little compared with the subject.
 * It executes its parent's commands one at a time, and ends with it.
 */

let streams: Streams | null = null

const current = (): Streams => {
  if (!streams) throw new Error('no streams are open')
  return streams
}

const execute = async (order: LoadOrder): Promise<unknown> => {
  switch (order.do) {
    case 'calls':
      return runCalls(order.plan)
    case 'open-streams':
      streams = new Streams(order.plan)
      return streams.open
    case 'progress':
      return current().progress
    case 'await-streams':
      return current().end
    case 'abandon-streams':
      return streams?.abandon()
  }
}

process.on('message', async ({ id, order }: { id: number; order: LoadOrder }) => {
  const answer = await execute(order).then(
    (value): LoadAnswer => ({ id, value }),
    (error: Error): LoadAnswer => ({ id, error: error.message }),
  )
  process.send!(answer)
})
process.once('disconnect', () => process.exit(0))
