/** `tollgate logs …`: calls, for operators. */
import { Option } from 'commander'
import { CALL_STATUSES, type CallStatus } from '../../../schemas/call-log/row.ts'
import type { OperatorCall } from '../../postgres/call-log/calls.ts'
import type { Command, Context } from '../context.ts'
import { readCount, readNames } from '../operations/fields.ts'
import { readFound } from './find.ts'
import { printFound } from './find-text.ts'
import { callLine } from './line.ts'
import { addRebuild } from './rebuild.ts'
import { follow, showNewest, type TailOutput } from './tail.ts'

const DEFAULT_TAIL_LINES = 10

export function addLogsCommands(program: Command, context: Context): void {
  const logs = program.group('logs')
  addTail(logs, context)
  addFind(logs, context)
  addRebuild(logs, context)
}

interface TailFlags {
  readonly account?: string
  readonly key?: string
  readonly model?: readonly string[]
  readonly status?: readonly CallStatus[]
  readonly lines: number
  readonly follow: boolean
  readonly json?: boolean
}

function addTail(logs: Command, { wiring, output }: Context): void {
  logs
    .command('tail')
    .description('the newest calls, and then each as it is booked')
    .option('--account <id>', 'of this account only')
    .option('--key <id>', 'of this key only')
    .option('--model <a,b>', 'of these models only', (text) => readNames(text))
    .option('--status <a,b>', 'with one of these statuses only', (text) => readNames(text, CALL_STATUSES))
    .option(
      '-n, --lines <n>',
      'how many of the newest come first',
      (text) => readCount(text, 0),
      DEFAULT_TAIL_LINES,
    )
    .option('--no-follow', 'end behind the newest')
    .addOption(new Option('--json', 'print one JSON value a line'))
    .example('logs tail --status error,interrupted -n 50')
    .action(async ({ account, key, model, status, lines, follow: goesOn, json = false }: TailFlags) => {
      const filter = {
        ...(account !== undefined && { accountId: account }),
        ...(key !== undefined && { keyId: key }),
        ...(model !== undefined && { models: model }),
        ...(status !== undefined && { statuses: status }),
      }
      const tail = tailOutput(output, json)
      await wiring.untilStopped(async (stopped) => {
        const position = await wiring.withDatabase((database) =>
          showNewest(database, { filter, lines }, tail),
        )
        if (goesOn) await follow(wiring, filter, { position, stopped }, tail)
      })
    })
}

function tailOutput(output: Context['output'], json: boolean): TailOutput {
  const line = (call: OperatorCall): string =>
    json ? `${JSON.stringify(call)}\n` : callLine(call, output.isColoured)
  return {
    calls: (calls) => {
      if (calls.length > 0) output.answer(calls.map(line).join(''))
    },
    notice: (text) => output.error(`${text}\n`),
  }
}

function addFind(logs: Command, { wiring }: Context): void {
  logs
    .command('find')
    .description('all that is known of one call or task')
    .argument('<ref>', 'request id, task id, or the id of a row')
    .example('logs find req_01J8Z3N4V9QKX2T5W7Y0ABCDEF')
    .answers(async (ref: string) => {
      const json = await wiring.withDatabase((database) => readFound(database, wiring.findInJournals, ref))
      return { json, text: () => printFound(json) }
    })
}
