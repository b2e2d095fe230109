/** The command that replaces the master key. */
import { answerRecord, type Command, type Context } from '../context.ts'

export function addMasterKeyCommands(program: Command, context: Context): void {
  const masterKey = program.command('master-key').description('the key that encrypts API keys at rest')
  masterKey
    .command('rotate')
    .description('encrypt everything with a new master key; the service runs on')
    .option('--end-links', 'also sign links to files and log cursors with new keys: those handed out end')
    .example('master-key rotate')
    .answers(async ({ endLinks = false }: { endLinks?: boolean }) => {
      const keys = await context.wiring.rotateMasterKey({ endLinks })
      return answerRecord({
        rotated: keys !== null,
        keys: keys ?? 0,
        next: 'restart each service with the new master key',
      })
    })
}
