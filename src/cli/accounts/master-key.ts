/** The command that replaces the master key. */
import type { Command } from 'commander'
import { answerRecord, answers, type Context } from '../context.ts'

export function addMasterKeyCommands(program: Command, context: Context): void {
  const masterKey = program.command('master-key').description('the key that encrypts API keys at rest')
  answers(
    context,
    masterKey
      .command('rotate')
      .description('encrypt everything with a new master key; the service runs on')
      .option('--end-links', 'also sign links to files and log cursors with new keys: those handed out end'),
    'master-key rotate',
    async ({ endLinks = false }: { endLinks?: boolean }) => {
      const keys = await context.wiring.rotateMasterKey({ endLinks })
      return answerRecord({
        rotated: keys !== null,
        keys: keys ?? 0,
        next: 'restart each service with the new master key',
      })
    },
  )
}
