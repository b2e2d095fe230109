/** `npm run chaos`: a run of chaos, whose folder says what happened when something was wrong. */
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { givenOptions, wholeNumber } from '../../bench/harness/command-line.ts'
import type { Teardown } from '../support/engines.ts'
import { runTestProgram } from '../support/program-run.ts'
import { runCampaign } from './campaign.ts'
import { dropUnlessWrong, keptWhere } from './kept.ts'

const USAGE = `npm run chaos -- [options]

  --minutes N   how long the load and the faults last (default 10)
  --seed N      draws faults and calls (default: a random one, which is printed)
  --folder DIR  seed, history and logs go there, and stay where a run fails (default: a folder of the system's)
`
const MOST_MINUTES = 24 * 60
const MOST_SEED = 2 ** 31 - 1

const say = (line: string) => void process.stdout.write(`${line}\n`)

async function main(t: Teardown, args: string[]): Promise<number> {
  const text = { type: 'string' } as const
  const given = givenOptions(args, { help: { type: 'boolean' }, minutes: text, seed: text, folder: text })
  if (given.help) {
    say(USAGE)
    return 0
  }
  const minutes = given.minutes === undefined ? 10 : wholeNumber('minutes', given.minutes, 1, MOST_MINUTES)
  const seed =
    given.seed === undefined
      ? Math.floor(Math.random() * MOST_SEED)
      : wholeNumber('seed', given.seed, 0, MOST_SEED)
  const folder = resolve(given.folder ?? join(tmpdir(), `tollgate-chaos-${seed}`))
  say(keptWhere(seed, folder))
  const { problems, figures } = await runCampaign(t, { seed, minutes, folder, say })
  for (const [name, value] of Object.entries(figures)) say(`  ${name}: ${value}`)
  for (const problem of problems) say(`PROBLEM ${problem.slice(0, 2_000)}`)
  dropUnlessWrong(folder, problems)
  say(problems.length === 0 ? 'Everything is as it must be.' : keptWhere(seed, folder))
  return problems.length === 0 ? 0 : 1
}

await runTestProgram(USAGE, main)
