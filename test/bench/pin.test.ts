import { spawn } from 'node:child_process'
import { once } from 'node:events'
import t from 'tap'
import { pin } from '../../bench/harness/children.ts'
import { allowedCores } from '../../bench/harness/proc.ts'
import { findProgram } from '../../src/embedded/programs.ts'

const skip = findProgram('taskset') === null && 'needs taskset'

t.test('a process that runs is moved to a core', { skip }, async (t) => {
  const child = spawn('sleep', ['60'])
  t.teardown(() => child.kill('SIGKILL'))
  await once(child, 'spawn')
  const core = allowedCores().at(-1)!
  pin(child.pid!, core)
  t.same(allowedCores(child.pid), [core])
})

t.test('one that has ended is nobody to move', { skip }, async (t) => {
  const child = spawn('true')
  await once(child, 'close')
  t.doesNotThrow(() => pin(child.pid!, allowedCores()[0]!))
})
