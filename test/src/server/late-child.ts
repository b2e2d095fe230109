/** Runs in place of the service: a child that is ready at once where it is the first, and else once a file is there. */
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = process.env.LATE_CHILD_FOLDER ?? ''
const READY_POLL_MS = 5

process.once('message', () => {
  const isFirst = readdirSync(folder).length === 0
  writeFileSync(join(folder, `process-${process.pid}`), '')
  const timer = setInterval(() => {
    if (!isFirst && !existsSync(join(folder, 'go'))) return
    clearInterval(timer)
    process.send?.({ type: 'ready' }, () => {
      if (!isFirst) writeFileSync(join(folder, 'ready'), '')
    })
  }, READY_POLL_MS)
})
process.on('message', ({ type }: { type: string }) => type === 'drain' && process.exit(0))
process.on('disconnect', () => process.exit(0))
