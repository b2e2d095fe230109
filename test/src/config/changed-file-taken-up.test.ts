import { execFileSync } from 'node:child_process'
import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { loadConfigFile } from '../../../src/config/load.ts'
import type { Problem } from '../../../src/config/problem.ts'
import { watchConfig } from '../../../src/config/watch.ts'
import { until } from '../../support/eventually.ts'

const POLL_MS = 10
/** Long enough for several looks; used only where nothing is to happen. */
const QUIET_MS = 10 * POLL_MS

/** A configuration identified by its number of retries. */
const config = (retries: number) => `retries: ${retries}\n`

class Watched {
  readonly taken: number[] = []
  readonly refused: (readonly Problem[])[] = []

  constructor(t: Test, path: string, loaded = loadConfigFile(path, {})) {
    const watch = watchConfig(path, {
      env: {},
      loaded,
      pollIntervalMs: POLL_MS,
      onChange: ({ retries }) => this.taken.push(retries),
      onRefused: (problems) => this.refused.push(problems),
    })
    const held = setInterval(() => {}, 60_000)
    t.teardown(() => {
      watch.close()
      clearInterval(held)
    })
  }

  /** Waits until so much has happened. */
  until = (taken: number[], refused = 0): Promise<void> =>
    until('the file is read', () => this.taken.length >= taken.length && this.refused.length >= refused)
}

function start(t: Test): { path: string; watched: Watched } {
  const path = join(t.testdir({ 'c.yaml': config(1) }), 'c.yaml')
  return { path, watched: new Watched(t, path) }
}

/** Opens files until this process may open no more, of a limit that is low meanwhile. Returns what closes them. */
function takeEveryDescriptor(t: Test): () => void {
  const limit = (soft: string) =>
    execFileSync('prlimit', ['--pid', `${process.pid}`, `--nofile=${soft}:`], { stdio: 'pipe' })
  const [, before = ''] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))!
  const taken: number[] = []
  const free = () => {
    for (const descriptor of taken.splice(0)) closeSync(descriptor)
    limit(before)
  }
  t.teardown(() => taken.length > 0 && free())
  limit('256')
  try {
    for (;;) taken.push(openSync('/dev/null', 'r'))
  } catch {
    return free
  }
}

t.test('written in place', async (t) => {
  const { path, watched } = start(t)
  writeFileSync(path, config(2))
  await watched.until([2])
  writeFileSync(path, config(3))
  await watched.until([2, 3])
  t.same(watched.taken, [2, 3])
  t.same(watched.refused, [])
})

t.test('replaced by rename, with the same size and time', async (t) => {
  const { path, watched } = start(t)
  writeFileSync(`${path}.new`, config(2))
  utimesSync(path, 1000, 1000)
  utimesSync(`${path}.new`, 1000, 1000)
  renameSync(`${path}.new`, path)
  await watched.until([2])
  t.same(watched.taken, [2])
})

t.test('a folder swapped behind two links, as a ConfigMap is', async (t) => {
  const folder = t.testdir({})
  for (const [name, retries] of Object.entries({ one: 1, two: 2 })) {
    mkdirSync(join(folder, name))
    writeFileSync(join(folder, name, 'c.yaml'), config(retries))
  }
  symlinkSync('one', join(folder, '..data'))
  symlinkSync('..data/c.yaml', join(folder, 'c.yaml'))
  const watched = new Watched(t, join(folder, 'c.yaml'))
  symlinkSync('two', join(folder, '..data_tmp'))
  renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
  rmSync(join(folder, 'one'), { recursive: true })
  await watched.until([2])
  t.same(watched.taken, [2])
})

t.test('a broken file is refused whole, once, and the next sound one is taken up', async (t) => {
  const { path, watched } = start(t)
  writeFileSync(path, 'retries: 2\nretrys: 3\n')
  await watched.until([], 1)
  await sleep(QUIET_MS)
  t.match(watched.refused, [[{ file: path, line: 2, field: 'retrys', message: /Did you mean "retries"/ }]])
  t.same(watched.taken, [])
  writeFileSync(path, config(4))
  await watched.until([4], 1)
  t.same(watched.taken, [4])
  t.equal(watched.refused.length, 1)
})

t.test('an emptied or removed file leaves the old one in force', async (t) => {
  const { path, watched } = start(t)
  truncateSync(path)
  await watched.until([], 1)
  rmSync(path)
  await watched.until([], 2)
  t.same(
    watched.refused.map(([problem]) => problem?.message),
    ['The file is empty.', 'There is no such file.'],
  )
  writeFileSync(path, config(5))
  await watched.until([5], 2)
  t.same(watched.taken, [5])
})

t.test('a file that cannot be reached leaves the old one in force', async (t) => {
  const { path, watched } = start(t)
  rmSync(path)
  symlinkSync('c.yaml', path)
  await watched.until([], 1)
  await sleep(QUIET_MS)
  t.match(watched.refused, [[{ file: path, message: /^It cannot be read: ELOOP/ }]])
  rmSync(path)
  writeFileSync(path, config(6))
  await watched.until([6], 1)
  t.same(watched.taken, [6])
})

t.test('a file that cannot be opened for a moment is read once it can be', async (t) => {
  const { path, watched } = start(t)
  const changed = openSync(path, 'r+')
  const free = takeEveryDescriptor(t)
  writeSync(changed, config(7), 0)
  await watched.until([], 1)
  await sleep(QUIET_MS)
  free()
  t.match(watched.refused, [[{ file: path, message: /^It cannot be read: EMFILE/ }]], 'reported once')
  await watched.until([7], 1)
  t.same(watched.taken, [7])
})

t.test('touched without a change: nothing happens', async (t) => {
  const { path, watched } = start(t)
  writeFileSync(path, config(1))
  await sleep(QUIET_MS)
  t.same(watched.taken, [])
  t.same(watched.refused, [])
})

t.test('changed between loading and watching', async (t) => {
  const path = join(t.testdir({ 'c.yaml': config(1) }), 'c.yaml')
  const loaded = loadConfigFile(path, {})
  writeFileSync(path, config(2))
  const watched = new Watched(t, path, loaded)
  await watched.until([2])
  t.same(watched.taken, [2])
})
