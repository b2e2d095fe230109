/**
 * Loaded into each process of the service under attack. In a gateway it measures by how much the event loop is late;
 * SIGUSR2 makes it write the longest delay since the last signal, in milliseconds, into the file that the variable names.
 */
import { renameSync, writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { DELAY_FILE_VARIABLE } from './event-loop-delay.ts'

const RESOLUTION_MS = 5
const NS_PER_MS = 1e6

const path = process.env[DELAY_FILE_VARIABLE]
if (path !== undefined && process.argv.some((word) => word.endsWith('--role=gateway'))) {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delay.enable()
  process.on('SIGUSR2', () => {
    writeFileSync(`${path}.part`, String(Math.max(0, delay.max / NS_PER_MS - RESOLUTION_MS)))
    renameSync(`${path}.part`, path)
    delay.reset()
  })
}
