/** Operations on journals of gateways: which are not drained, and the end of those whose machine never comes back. */
import { z } from 'zod'
import { amountText, instantText, operation, toListSchema } from './operation.ts'

const id = z.string().describe('Id of the journal: the content of its file `id`.')
const MAX_PATH_CHARS = 1_024

const journal = z.object({
  id,
  node: z.string().describe('Name of the machine.'),
  directory: z.string().describe('Where the journal is on its disk.'),
  state: z.enum(['live', 'silent']).describe('Silent: without a heartbeat for 30 seconds.'),
  last_heartbeat: instantText,
  open_calls: z.int().describe('Calls under way at the last heartbeat.'),
  open_estimate: amountText.describe('The most that they may cost, in credits.'),
  unbooked_calls: z.int().describe('Ended calls that were not booked at the last heartbeat.'),
  unbooked_cost: amountText.describe('What they cost, in credits.'),
})

const ofOperators = { scope: 'admin', allows: 'operators' } as const

export const listJournals = operation('listJournals', {
  ...ofOperators,
  summary: 'List the journals that are not drained, those with the oldest heartbeat first.',
  details: 'A gateway in use is among them. Every gateway sends a heartbeat every five seconds.',
  input: z.object({}),
  answer: {
    name: 'JournalList',
    schema: toListSchema(journal),
  },
  commands: [
    {
      words: 'journal list',
      columns: 'id node state last_heartbeat open_calls open_estimate unbooked_calls unbooked_cost directory',
    },
  ],
})

export const importJournal = operation('importJournal', {
  ...ofOperators,
  summary: 'Book the calls of a journal in a directory, each once, however often this is run.',
  details:
    'The directory is on the machine of the gateway that answers; `tollgate journal import` reads one of the machine ' +
    'where it runs. The directory is below the data directory of that gateway, or below a folder of ' +
    '`journals.import_roots`. A call without an end becomes an interrupted row without a charge. 409 while the gateway of the ' +
    'journal lives, or while JetStream has settlements of it.',
  input: z.object({
    directory: z
      .string()
      .min(1)
      .max(MAX_PATH_CHARS)
      .describe('The folder with the file `id`, such as `/mnt/data/journal/gateway-0`.'),
  }),
  answer: {
    name: 'ImportedJournal',
    schema: z.object({
      id,
      booked_calls: z.int().describe('Calls that had no row before.'),
      booked_cost: amountText.describe('What they cost, in credits.'),
      known_calls: z.int().describe('Calls that had a row already, and were left as they are.'),
      refused_calls: z.int().describe('Calls that cannot be booked; they are kept with the reason.'),
      damaged_bytes: z.int().describe('Bytes of the journal that cannot be read.'),
      rest_calls: z
        .int()
        .describe(
          'Calls of the gateway that the directory does not have: abandon the journal to close them.',
        ),
    }),
  },
  commands: [{ words: 'journal import', args: 'directory', example: '/mnt/data/journal/gateway-0' }],
})

export const abandonJournal = operation('abandonJournal', {
  ...ofOperators,
  summary: 'Close a journal that will never come back.',
  details:
    'Its calls that PostgreSQL knows, by what they have reserved, become interrupted rows without a charge, and the ' +
    'reservations end. What only its disk knew is lost. 409 while its gateway lives, or while JetStream has ' +
    'settlements of it. An import that follows books the calls that have no row.',
  input: z.object({ id }),
  answer: {
    name: 'AbandonedJournal',
    schema: z.object({
      id,
      interrupted_calls: z.int().describe('Rows that were made.'),
      lost_calls: z.int().describe('Ended calls that were not booked at its last heartbeat.'),
      lost_cost: amountText.describe('What they cost, in credits.'),
    }),
  },
  commands: [
    {
      words: 'journal abandon',
      summary: 'Close a journal that will never come back. Calls that only its disk had are lost.',
      effect: 'Calls that only the disk of the journal {id} has would be lost',
    },
  ],
})
