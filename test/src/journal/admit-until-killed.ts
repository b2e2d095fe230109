/** Admits and settles calls in the journal of the directory given, telling each on standard output, until it is killed. */
import { writeSync } from 'node:fs'
import { openJournal } from '../../../src/journal/journal.ts'
import { admission, settlement } from './support.ts'

const [directory = '', name = ''] = process.argv.slice(2)
const GROUP_CALLS = 7
const quiet = { info() {}, warn() {}, error() {} }
const journal = await openJournal({ directory, log: quiet, segmentBytes: 100_000 })
/** Where the test reads slower than this tells, the pipe is full for a while. */
function tell(text: string): void {
  let left = Buffer.from(`${text}\n`)
  while (left.length > 0) {
    try {
      left = left.subarray(writeSync(1, left))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
    }
  }
}
tell('ready')

let serial = 0
function turn() {
  for (let at = 0; at < GROUP_CALLS; at++) {
    const requestId = `${name}-${serial++}`
    const ticket = journal.admit(admission(requestId), (error) => {
      if (error !== null) throw error
      tell(`admitted ${requestId}`)
      if (at % 3 === 0) return
      journal.settle(ticket, settlement(requestId), () => tell(`settled ${requestId}`))
    })
  }
  setImmediate(turn)
}
turn()
// Ends with the test, should that not get to killing it.
process.stdin.once('end', () => process.exit(1)).resume()
