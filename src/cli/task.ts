/** `tollgate task …`: the tasks of all accounts, and ending one by hand. */
import { InvalidArgumentError, Option } from 'commander'
import { lostSubmitActs } from '../../pipelines/management/calls/lost-submits.ts'
import { taskActs } from '../../pipelines/management/calls/tasks.ts'
import { cursorAfter } from '../../pipelines/management/page.ts'
import {
  checkLostSubmit,
  closeLostSubmit,
  listLostSubmits,
} from '../../schemas/management/calls/lost-submits.ts'
import { endTask, listAllTasks, retryTask, showAnyTask } from '../../schemas/management/calls/tasks.ts'
import type { InputOf } from '../../schemas/management/operation.ts'
import { printCredits } from '../../schemas/money.ts'
import { TASK_KINDS } from '../../schemas/tasks/kinds.ts'
import { TASK_STATES, type TaskKind } from '../../schemas/tasks/task.ts'
import { answerRecord, answerTable, type Command, type Context } from './context.ts'
import { runCommandAct, runnerOf, runnerOn } from './management.ts'
import { credits, entryLimit, noteText } from './option-values.ts'
import type { Wiring } from './wiring.ts'

const DEFAULT_TASKS = 50
const LIST_FIELDS = [
  'id',
  'state',
  'account_id',
  'model',
  'channel_id',
  'hold',
  'cost',
  'created_at',
  'ended_at',
  'error_code',
]
const LOST_FIELDS = [
  'id',
  'state',
  'account_id',
  'model',
  'channel_id',
  'upstream_id',
  'cost',
  'lost_at',
  'next_check_at',
  'reason',
]
const OPEN = 'open'
const MAX_REASON_CHARS = 500

function stateList(text: string): string {
  const isKnown = (word: string) => (TASK_STATES as readonly string[]).includes(word.trim())
  if (text === OPEN || text.split(',').every(isKnown)) return text
  throw new InvalidArgumentError(`It is "${OPEN}", or a comma list of ${TASK_STATES.join(', ')}.`)
}

function reasonText(text: string): string {
  const reason = text.trim()
  if (reason !== '' && reason.length <= MAX_REASON_CHARS) return reason
  throw new InvalidArgumentError(`A reason has 1 to ${MAX_REASON_CHARS} characters; the customer reads it.`)
}

interface ListOptions {
  readonly account?: string
  readonly kind?: TaskKind
  readonly state?: string
  readonly before?: string
  readonly limit: number
}

export function addTaskCommands(program: Command, { wiring }: Context): void {
  const { list } = runnerOf(wiring, taskActs, () => ({}))
  const task = program
    .command('task')
    .description('videos, images, music and other work that outlives its request')

  task
    .command('list')
    .description('the newest first, of all accounts or of one')
    .option('--account <id>', 'of this account alone')
    .addOption(new Option('--kind <kind>', 'of this kind alone').choices(TASK_KINDS))
    .option('--state <states>', `"${OPEN}", or a comma list of states`, stateList)
    .option('--before <task>', 'the next page: those older than this task')
    .option('--limit <n>', 'how many', entryLimit, DEFAULT_TASKS)
    .example('task list --state open --kind video')
    .answers(async ({ account, kind, state, before, limit }: ListOptions) => {
      const input = {
        account_id: account,
        kind,
        ...(state === OPEN ? { open: 'true' } : { state }),
        ...(before !== undefined && { cursor: cursorAfter(before) }),
      }
      return answerTable(await list(listAllTasks, input, limit), LIST_FIELDS)
    })

  task
    .command('show')
    .description('all that is known of a task, with fresh links to what it made')
    .argument('<id>', 'task id')
    .example('task show vid_01J8Z3N4V9QKX2T5W7Y0ABCDEF')
    .answers(async (id: string) =>
      wiring.withLibrary(async ({ database, store: files }) =>
        answerRecord(
          await runCommandAct(wiring, taskActs, showAnyTask, { id }, { database, deps: { files } }),
        ),
      ),
    )

  const { run } = runnerOn(wiring, taskActs, (work) =>
    wiring.withTasks(({ database, ...deps }) => work(database, deps)),
  )
  const end = async (input: InputOf<typeof endTask>) => answerRecord(await run(endTask, input))

  task
    .command('cancel')
    .description(
      'cancel a task for its customer, also at its provider: full refund; what is still made is discarded',
    )
    .argument('<id>', 'task id')
    .option('--reason <text>', 'the customer reads it', reasonText)
    .example('task cancel vid_01J8Z3N4V9QKX2T5W7Y0ABCDEF')
    .answers((id: string, { reason = null }: { reason?: string | null }) =>
      end({ id, as: 'cancelled', reason }),
    )

  task
    .command('fail')
    .description(
      'end a task that came to nothing, also at its provider: full refund; what is still made is discarded',
    )
    .argument('<id>', 'task id')
    .requiredOption('--reason <text>', 'the customer reads it', reasonText)
    .example('task fail vid_01J8Z3N4V9QKX2T5W7Y0ABCDEF --reason "The provider lost it."')
    .answers((id: string, { reason }: { reason: string }) => end({ id, as: 'failed', reason }))

  task
    .command('retry')
    .description('look after a task now: ask its provider again, or store its results again')
    .argument('<id>', 'task id')
    .example('task retry vid_01J8Z3N4V9QKX2T5W7Y0ABCDEF')
    .answers(async (id: string) => answerRecord(await run(retryTask, { id })))

  addLostSubmitCommands(task, wiring)
}

function addLostSubmitCommands(task: Command, wiring: Wiring): void {
  const { run, list } = runnerOf(wiring, lostSubmitActs, () => ({}))
  task
    .command('lost')
    .description('submits whose outcome at their provider is unknown, the newest first')
    .option('--all', 'also those that are closed', false)
    .option('--limit <n>', 'how many', entryLimit, DEFAULT_TASKS)
    .example('task lost')
    .answers(async ({ all, limit }: { all: boolean; limit: number }) =>
      answerTable(await list(listLostSubmits, { state: all ? 'all' : 'open' }, limit), LOST_FIELDS),
    )

  task
    .command('lost-check')
    .description('ask the provider of a lost submit now, and cancel what it has, where it can')
    .argument('<id>', 'task id: our reference at the provider')
    .example('task lost-check vid_01J8Z3N4V9QKX2T5W7Y0ABCDEF')
    .answers(async (id: string) => answerRecord(await run(checkLostSubmit, { id })))

  task
    .command('lost-close')
    .description('close a lost submit that was dealt with, with what it has cost the operator')
    .argument('<id>', 'task id: our reference at the provider')
    .requiredOption('--reason <text>', 'what was done about it, for the audit record', noteText)
    .option('--cost <credits>', 'what the provider bills (default: not known)', credits)
    .example('task lost-close vid_01J8Z3N4V9QKX2T5W7Y0ABCDEF --cost 12.5 --reason "on the May invoice"')
    .answers(async (id: string, { reason, cost }: { reason: string; cost?: bigint }) =>
      answerRecord(
        await run(closeLostSubmit, { id, reason, cost: cost === undefined ? null : printCredits(cost) }),
      ),
    )
}
