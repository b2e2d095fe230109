/** `tollgate partitions`: the months of the tables that grow for ever, also those that retention has taken away. */
import type { Command } from 'commander'
import { partitionActs } from '../../pipelines/management/jobs/partitions.ts'
import { listPartitions } from '../../schemas/management/partitions.ts'
import { answers, answerTable, type Context } from './context.ts'
import { runnerOf } from './management.ts'

const FIELDS = ['name', 'state', 'from', 'to', 'rows', 'bytes', 'retired_at']

export function addPartitionsCommand(program: Command, context: Context): void {
  const { run } = runnerOf(context.wiring, partitionActs, () => ({}))
  answers(
    context,
    program
      .command('partitions')
      .description(
        'the months of calls, ledger, audit record and tasks, also those that retention has taken away',
      ),
    'partitions --json',
    async () => answerTable((await run(listPartitions, {})).data, FIELDS),
  )
}
