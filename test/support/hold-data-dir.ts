/**
 * Locks the data directory given as argument, waiting for a predecessor as long as the next one says, in ms; says
 * whether it could, and stays until it is ended.
 */
import { DataDirInUse, lockDataDir } from '../../src/embedded/data-dir.ts'
import { RUN_ADDRESS } from './run-address.ts'

try {
  const [, , dir = '', boundMs] = process.argv
  const lock = await lockDataDir(dir, boundMs === undefined ? undefined : Number(boundMs))
  lock.writeRunFile(RUN_ADDRESS)
  process.stdout.write('held\n')
} catch (error) {
  if (!(error instanceof DataDirInUse)) throw error
  process.stdout.write(`refused: ${error.pid}\n`)
}
// Ends with the test, should that not get to killing it.
process.stdin.once('end', () => process.exit(1)).resume()
