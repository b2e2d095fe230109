/** `tollgate journal list|import|abandon`: the journals of gateways, and the end of those that never come back. */
import { resolve } from 'node:path'
import { journalActs } from '../../pipelines/management/jobs/journals.ts'
import { abandonJournal, importJournal, listJournals } from '../../schemas/management/journals.ts'
import { assertAgreed } from './accounts/confirm.ts'
import { answerRecord, answerTable, type Command, type Context } from './context.ts'
import { runnerOn } from './management.ts'

const FIELDS = [
  'id',
  'node',
  'state',
  'last_heartbeat',
  'open_calls',
  'open_estimate',
  'unbooked_calls',
  'unbooked_cost',
  'directory',
]

export function addJournalCommands(program: Command, { wiring }: Context): void {
  const journal = program
    .command('journal')
    .description('journals of gateways, also of machines that are gone')
  const { run } = runnerOn(wiring, journalActs, wiring.withJournals)
  journal
    .command('list')
    .description('every journal that is not drained; those in use are live')
    .example('journal list')
    .answers(async () => answerTable((await run(listJournals, {})).data, FIELDS))
  journal
    .command('import')
    .description('book the journal that is found on a disk, each call once, however often')
    .argument('<dir>', 'folder of the journal, such as /mnt/data/journal/gateway-0')
    .example('journal import /mnt/data/journal/gateway-0')
    .answers(async (directory: string) =>
      answerRecord(await run(importJournal, { directory: resolve(directory) })),
    )
  journal
    .command('abandon')
    .description('close a journal that can never come back; what only its disk knew is lost')
    .argument('<id>', 'journal id')
    .option('--yes', 'do not ask')
    .example('journal abandon sNk3v8ZqPbTr --yes')
    .answers(async (id: string, { yes = false }: { yes?: boolean }) => {
      const question = `Calls that only the disk of the journal ${id} knows are lost. Abandon it?`
      if (!yes) await assertAgreed(wiring, question, 'Calls may be lost. Name --yes.')
      return answerRecord(await run(abandonJournal, { id }))
    })
}
