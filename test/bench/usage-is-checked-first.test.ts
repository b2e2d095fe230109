/** Wrong usage of a bench exits 2 and starts nothing; help exits 0. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const run = (bench: string, ...args: string[]) => {
  const program = fileURLToPath(new URL(`../../bench/${bench}`, import.meta.url))
  return spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' })
}

for (const [bench, option, wrong, refusal] of [
  ['run.ts', '--skip', 'apache', '"apache"'],
  ['logs/run.ts', '--rows', 'many', '--rows must be'],
  ['search/run.ts', '--pages', 'none', '"none"'],
  ['tasks/run.ts', '--tasks', 'none', '"none"'],
] as const)
  t.test(bench, async (t) => {
    t.match(run(bench, option, wrong), { status: 2, stderr: refusal })
    t.match(run(bench, '--help'), { status: 0, stdout: option })
  })
