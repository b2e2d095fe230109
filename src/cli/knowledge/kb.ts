/** `tollgate kb …`: knowledge bases, their pages, and their readers. */
import { baseActs } from '../../../pipelines/management/knowledge/bases.ts'
import { DEFAULT_KB_ID } from '../../../schemas/knowledge/wiki.ts'
import {
  createBase,
  deleteBase,
  grantBase,
  listAllBases,
  revokeBase,
  showBase,
} from '../../../schemas/management/knowledge/bases.ts'
import type { InputOf } from '../../../schemas/management/operation.ts'
import { type Answer, answerRecord, answerTable, type Command, type Context } from '../context.ts'
import { runnerOf } from '../management.ts'
import { nameText } from '../option-values.ts'
import { addImport } from './import-command.ts'

const LIST_FIELDS = ['id', 'account_id', 'name', 'is_default', 'pages', 'readers', 'created_at']
const KB_EXAMPLE = 'kb_01J8Z3N4V9QKX2T5W7Y0ABCDEF'
const ACCOUNT_EXAMPLE = 'acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF'

export function addKnowledgeCommands(program: Command, context: Context): void {
  const { wiring } = context
  const kb = program.command('kb').description('knowledge bases')
  type BaseOperation = typeof createBase | typeof showBase | typeof grantBase
  const acts = runnerOf(wiring, baseActs, () => ({}))
  const run = async <O extends BaseOperation>(operation: O, input: InputOf<O>): Promise<Answer> =>
    answerRecord(await acts.run(operation, input))

  kb.command('create')
    .description(`a new knowledge base beside the account's own one, which needs no creating`)
    .requiredOption('--account <id>', 'whose it is')
    .requiredOption('--name <name>', 'what to call it', nameText)
    .example(`kb create --account ${ACCOUNT_EXAMPLE} --name Handbook`)
    .answers(({ account, name }: { account: string; name: string }) =>
      run(createBase, { account_id: account, name }),
    )

  kb.command('list')
    .description('every knowledge base, or those of one account')
    .option('--account <id>', 'of this account only')
    .example('kb list')
    .answers(async ({ account }: { account?: string }) =>
      answerTable(await acts.list(listAllBases, { account_id: account }), LIST_FIELDS),
    )

  kb.command('show')
    .description('one knowledge base with its readers')
    .argument('<kb>', 'knowledge base id')
    .example(`kb show ${KB_EXAMPLE}`)
    .answers((id: string) => run(showBase, { id }))

  addImport(kb, context)

  kb.command('grant')
    .description('let another account, an organization or an agent read it')
    .argument('<kb>', 'knowledge base id')
    .requiredOption('--to <id>', 'account id or agent id')
    .example(`kb grant ${KB_EXAMPLE} --to ${ACCOUNT_EXAMPLE}`)
    .answers((id: string, { to }: { to: string }) => run(grantBase, { id, reader_id: to }))

  kb.command('revoke')
    .description('take a grant back')
    .argument('<kb>', 'knowledge base id')
    .requiredOption('--to <id>', 'account id or agent id')
    .example(`kb revoke ${KB_EXAMPLE} --to ${ACCOUNT_EXAMPLE}`)
    .answers((id: string, { to }: { to: string }) => run(revokeBase, { id, reader_id: to }))

  kb.command('delete')
    .description('delete a knowledge base with all its pages, for good')
    .argument('<kb>', 'knowledge base id')
    .addHelpText(
      'after',
      `\nIts source files go as soon as links to them no longer open. An account's own base is "${DEFAULT_KB_ID}" again
after the next import, with new page ids.`,
    )
    .example(`kb delete ${KB_EXAMPLE}`)
    .answers((id: string) => run(deleteBase, { id }))
}
