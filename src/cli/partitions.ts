/** `tollgate partitions`: the months of the tables that grow for ever, also those that retention has taken away. */
import { partitionActs } from '../../pipelines/management/jobs/partitions.ts'
import { listPartitions } from '../../schemas/management/partitions.ts'
import { answerTable, type Command, type Context } from './context.ts'
import { runnerOf } from './management.ts'

const FIELDS = ['name', 'state', 'from', 'to', 'rows', 'bytes', 'retired_at']

export function addPartitionsCommand(program: Command, context: Context): void {
  const { run } = runnerOf(context.wiring, partitionActs, () => ({}))
  program
    .command('partitions')
    .description(
      'the months of calls, ledger, audit record and tasks, also those that retention has taken away',
    )
    .example('partitions --json')
    .answers(async () => answerTable((await run(listPartitions, {})).data, FIELDS))
}
