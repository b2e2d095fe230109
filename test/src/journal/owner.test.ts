import { spawn } from 'node:child_process'
import { on } from 'node:events'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { openJournal } from '../../../src/journal/journal.ts'
import { openOrphans, retireJournal } from '../../../src/journal/orphans.ts'
import { claimDirectory } from '../../../src/journal/owner.ts'
import {
  admit,
  confirmAll,
  keepingLog,
  newDirectory,
  openAndAbandon,
  settlement,
  takeAll,
} from './support.ts'

const PROGRAM = fileURLToPath(new URL('./admit-until-killed.ts', import.meta.url))

async function startHolder(t: Test, directory: string) {
  const child = spawn(process.execPath, [PROGRAM, directory, 'holder'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  for await (const [chunk] of on(child.stdout, 'data')) if (String(chunk).includes('admitted')) break
  child.stdout.resume()
  return child
}

t.test('a directory belongs to one living process', async (t) => {
  const directory = newDirectory(t)
  const child = await startHolder(t, directory)
  await t.rejects(claimDirectory(directory, 100), new RegExp(`in use by process ${child.pid}`))
})

t.test('a successor waits for its predecessor to end', async (t) => {
  const directory = newDirectory(t)
  const child = await startHolder(t, directory)
  const opening = openJournal({ directory, log: keepingLog().log })
  child.kill('SIGKILL')
  const journal = await opening
  t.ok(journal.recovered.unbooked > 0)
  await journal.close()
})

t.test('a pid that was given out again is nobody', async (t) => {
  const directory = newDirectory(t)
  writeFileSync(join(directory, 'owner'), '1 an-earlier-boot 1')
  await claimDirectory(directory, 100)
})

t.test('journals of workers that are no more are published too, and then removed', async (t) => {
  const root = newDirectory(t)
  const { log } = keepingLog()
  for (const name of ['gateway-0', 'gateway-1', 'gateway-2'])
    await openAndAbandon({ directory: join(root, name), log }, async (journal) => {
      journal.settle(await admit(journal, name), settlement(name))
    })
  const orphans = await openOrphans(root, ['gateway-0'], log)
  const [one, two] = orphans
  t.equal(orphans.length, 2)
  t.equal(confirmAll(one!.journal), 1)
  t.same(
    takeAll(two!.journal).map(({ request_id }) => request_id),
    ['gateway-2'],
  )
  t.equal(await retireJournal(one!), true)
  t.equal(await retireJournal(two!), false, 'taken, and not booked')
  t.notOk(existsSync(one!.directory))
  t.same(readdirSync(root).sort(), ['gateway-0', 'gateway-2'])
})
