/** Operations on the months of the tables that keep growing. */
import { z } from 'zod'
import { instantText, operation, toListSchema } from './operation.ts'

const partition = z.object({
  name: z.string(),
  table: z.enum(['usage_rows', 'ledger_entries', 'audit_entries', 'tasks']),
  from: instantText.nullable().describe('The first instant of it; null: the beginning.'),
  to: instantText.describe('The first instant after it.'),
  state: z
    .enum(['attached', 'detached', 'dropped'])
    .describe('Attached: in use. The others were removed by retention; a detached one is still a table.'),
  rows: z.int().describe('An estimate while it is attached.'),
  bytes: z.int().describe('With its indexes; 0 once it is gone.'),
  retired_at: instantText.nullable(),
})

export const listPartitions = operation('listPartitions', {
  summary: 'List the months of calls, ledger, audit record and tasks in PostgreSQL, the newest first.',
  details: 'Includes those that `retention` has removed; closing balances replace their entries.',
  input: z.object({}),
  answer: {
    name: 'PartitionList',
    schema: toListSchema(partition),
  },
  scope: 'admin',
  allows: 'operators',
  commands: [{ words: 'partitions', columns: 'name state from to rows bytes retired_at' }],
})
