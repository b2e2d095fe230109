import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { openJournal } from '../../../src/journal/journal.ts'
import { INTERRUPTED_MESSAGE } from '../../../src/journal/lines.ts'
import { Random } from '../../simulation/random.ts'
import { keepingLog, newDirectory, takeAll } from './support.ts'

const ROUNDS = 6
const LIFE_MAX_MS = 120
/** Another one each day; `SEED=N` repeats a run. */
const SEED = Number(process.env.SEED ?? Math.floor(Date.now() / 86_400_000))
const lives = new Random(SEED)
const PROGRAM = fileURLToPath(new URL('./admit-until-killed.ts', import.meta.url))

t.test(`what a process called written is found after SIGKILL at any moment (SEED=${SEED})`, async (t) => {
  const directory = newDirectory(t)
  const admitted = new Set<string>()
  const settled = new Set<string>()
  for (let round = 0; round < ROUNDS; round++) {
    const child = spawn(process.execPath, [PROGRAM, directory, String(round)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    t.teardown(() => child.kill('SIGKILL'))
    const lines = createInterface({ input: child.stdout })
    lines.on('line', (line) => {
      const [word, id = ''] = line.split(' ')
      if (word === 'admitted') admitted.add(id)
      if (word === 'settled') settled.add(id)
    })
    await once(lines, 'line')
    await sleep(lives.int(0, LIFE_MAX_MS))
    child.kill('SIGKILL')
    await once(lines, 'close')
  }
  const { lines, log } = keepingLog()
  const journal = await openJournal({ directory, log })
  t.teardown(() => journal.close())
  const found = takeAll(journal)
  const byId = new Map(found.map((row) => [row.request_id, row]))
  t.equal(byId.size, found.length, 'no call is there twice')
  t.ok(admitted.size > 0 && settled.size > 0)
  t.same(
    [...admitted].filter((id) => !byId.has(id)),
    [],
    'every admitted call is there',
  )
  t.same(
    [...settled].filter((id) => byId.get(id)?.status !== 'success'),
    [],
    'with the end that was written',
  )
  const open = found.filter(({ status }) => status === 'interrupted')
  t.ok(open.length > 0)
  t.ok(open.every(({ cost, error_message }) => cost === '0' && error_message === INTERRUPTED_MESSAGE))
  t.equal(journal.depth().open, 0)
  t.same(
    lines.filter(({ level }) => level === 'error'),
    [],
  )
})
