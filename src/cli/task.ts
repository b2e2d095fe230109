/** `tollgate task …`: the tasks of all accounts, and ending one by hand. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { taskActs } from '../../pipelines/management/calls/tasks.ts'
import { taskShape } from '../../pipelines/management/shapes.ts'
import { Failure } from '../../schemas/failure.ts'
import { endTask, retryTask } from '../../schemas/management/calls/tasks.ts'
import type { AnswerOf, Operation } from '../../schemas/management/operation.ts'
import { TASK_KINDS, TASK_STATES, type TaskKind, type TaskState } from '../../schemas/tasks/task.ts'
import { answerRecord, answers, answerTable, type Context } from './context.ts'
import { runCommandAct } from './management.ts'
import { taskLimit } from './option-values.ts'

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
const OPEN = 'open'
const MAX_REASON_CHARS = 500

function states(text: string): readonly TaskState[] | typeof OPEN {
  if (text === OPEN) return OPEN
  const words = text.split(',').map((word) => word.trim())
  const known = words.filter((word): word is TaskState => (TASK_STATES as readonly string[]).includes(word))
  if (known.length === words.length) return known
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
  readonly state?: readonly TaskState[] | typeof OPEN
  readonly before?: string
  readonly limit: number
}

export function addTaskCommands(program: Command, context: Context): void {
  const { wiring } = context
  const task = program
    .command('task')
    .description('videos, images, music and other work that outlives its request')

  answers(
    context,
    task
      .command('list')
      .description('the newest first, of all accounts or of one')
      .option('--account <id>', 'of this account alone')
      .addOption(new Option('--kind <kind>', 'of this kind alone').choices(TASK_KINDS))
      .option('--state <states>', `"${OPEN}", or a comma list of states`, states)
      .option('--before <task>', 'the next page: those older than this task')
      .option('--limit <n>', 'how many', taskLimit, DEFAULT_TASKS),
    'task list --state open --kind video',
    async ({ account, kind, state, before, limit }: ListOptions) => {
      const tasks = await wiring.withDatabase((database) =>
        database.listAllTasks({
          accountId: account ?? null,
          kind: kind ?? null,
          states: state === undefined || state === OPEN ? null : state,
          isOpen: state === OPEN,
          before: before ?? null,
          limit,
        }),
      )
      return answerTable(tasks.map(taskShape), LIST_FIELDS)
    },
  )

  answers(
    context,
    task.command('show').description('all that is known of a task').argument('<id>', 'task id'),
    'task show vid_01J8Z3N4V9QKX2T5W7Y0ABCDEF',
    async (id: string) => {
      const [found] = await wiring.withDatabase((database) => database.readTasks([id]))
      if (found === undefined) throw new Failure('not_found', `There is no task ${id}.`)
      return answerRecord(taskShape(found))
    },
  )

  const run = <O extends Operation>(operation: O, input: object): Promise<AnswerOf<O>> =>
    wiring.withTasks(({ database, ...deps }) =>
      runCommandAct(wiring, taskActs, operation, input, { database, deps }),
    )
  const end = async (input: object) => answerRecord(await run(endTask, input))

  answers(
    context,
    task
      .command('cancel')
      .description(
        'cancel a task for its customer, also at its provider: full refund; what is still made is discarded',
      )
      .argument('<id>', 'task id')
      .option('--reason <text>', 'the customer reads it', reasonText),
    'task cancel vid_01J8Z3N4V9QKX2T5W7Y0ABCDEF',
    (id: string, { reason = null }: { reason?: string | null }) => end({ id, as: 'cancelled', reason }),
  )

  answers(
    context,
    task
      .command('fail')
      .description(
        'end a task that came to nothing, also at its provider: full refund; what is still made is discarded',
      )
      .argument('<id>', 'task id')
      .requiredOption('--reason <text>', 'the customer reads it', reasonText),
    'task fail vid_01J8Z3N4V9QKX2T5W7Y0ABCDEF --reason "The provider lost it."',
    (id: string, { reason }: { reason: string }) => end({ id, as: 'failed', reason }),
  )

  answers(
    context,
    task
      .command('retry')
      .description('look after a task now: ask its provider again, or store its results again')
      .argument('<id>', 'task id'),
    'task retry vid_01J8Z3N4V9QKX2T5W7Y0ABCDEF',
    async (id: string) => answerRecord(await run(retryTask, { id })),
  )
}
