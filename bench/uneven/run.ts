/** `npm run bench:uneven`: prints what uneven load costs. Nothing is kept. */
import { endAll } from '../harness/children.ts'
import { interruptible, runProgram, sayOnStderr } from '../harness/program.ts'
import { enterWorkFolder } from '../harness/work-folder.ts'
import { type Measured, measure } from './measure.ts'
import { type Options, parseOptions, usage } from './options.ts'

const ROLES = ['gateway', 'settler', 'postgres', 'clickhouse', 'nats'] as const

const line = ({ name, calls, failed, cpuUs, others, gatewayMiB }: Measured): string => {
  const parts = ROLES.map((role) => Math.round(cpuUs[role] ?? 0))
  const sum = parts.reduce((total, part) => total + part, 0)
  const times = [others.p50Ms, others.p99Ms].map((ms) => Math.round(ms))
  return `| ${[name, calls, failed, sum, ...parts, ...times, Math.round(gatewayMiB)].join(' | ')} |`
}

const run = (options: Options): Promise<number> =>
  interruptible(sayOnStderr, async () => {
    const work = await enterWorkFolder()
    try {
      const { rows, page } = await measure(work.folder, options, sayOnStderr)
      const head = [
        'load',
        'calls',
        'failed',
        'CPU us a call',
        ...ROLES,
        'others p50 ms',
        'p99 ms',
        'gateway MiB',
      ]
      const text = [
        `| ${head.join(' | ')} |`,
        `|${head.map(() => '---').join('|')}|`,
        ...rows.map(line),
        `a page of ${page.keys} keys took ${Math.round(page.ms)} ms`,
      ]
      process.stdout.write(`${text.join('\n')}\n`)
      return rows.every(({ failed }) => failed === 0) ? 0 : 1
    } finally {
      await endAll()
      work.leave()
    }
  })

await runProgram(parseOptions, usage, run)
