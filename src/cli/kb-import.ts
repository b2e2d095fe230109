/** `tollgate kb import`: a folder of Markdown files becomes the pages of a knowledge base. */
import { join } from 'node:path'
import { makeReport, REPORTED_ENTRIES } from '../../pipelines/management/knowledge/report.ts'
import { DEFAULT_KB_ID } from '../../schemas/knowledge/wiki.ts'
import { newId } from '../core/keys/ids.ts'
import type { FileProblem } from '../markdown/problem.ts'
import type { Accounts } from '../postgres/accounts/repository.ts'
import { Refusal } from '../postgres/billing/refusal.ts'
import type { Knowledge } from '../postgres/knowledge/repository.ts'
import type { FolderToImport, ImportProgress } from '../server/knowledge/import-folder.ts'
import { type Answer, answerRecord, type Command, type Context } from './context.ts'
import { printable, printCount, startProgress } from './output.ts'

const HELP = `
Every .md and .markdown file below the folder becomes a page; hidden files and folders are left out. Front matter may
have title, summary, tags, aliases, confidence, needs_review and source; the default title is the first heading, or else
the file's name. [[Title]], [[Title|shown]] and [[Title#Heading]] become links, by title or alias. Files that have not
changed since the last import are skipped. A page keeps its id as long as its file keeps its path. Readers see the
base as it was until the whole import is there. If a file is bad nothing is changed, and every bad file is listed with
the line.`

interface ImportOptions {
  account: string
  kb?: string
  prune?: boolean
}

export function addImport(program: Command, context: Context): void {
  program
    .group('kb')
    .command('import')
    .description('Import a folder of Markdown files into a knowledge base')
    .argument('<dir>', 'Folder, with its subfolders')
    .requiredOption('--account <id>', 'Account of the base (required)')
    .option('--kb <id>', "Knowledge base id (default: the account's own)")
    .option('--prune', 'Remove pages whose files are gone; without it they are kept and listed')
    .addHelpText('after', HELP)
    .example('kb import --account ID ./handbook')
    .answers((dir: string, options: ImportOptions) => runImport(context, dir, options))
}

async function runImport(context: Context, folder: string, options: ImportOptions): Promise<Answer> {
  const [{ importFolder }, { FileProblemError }] = await Promise.all([
    import('../server/knowledge/import-folder.ts'),
    import('../markdown/problem.ts'),
  ])
  const progress = startProgress(context.output.error)
  const prune = options.prune === true
  try {
    const [database, store] = [await context.wiring.database(), await context.wiring.store()]
    const base = await findBase(database, options)
    const deps = {
      wiki: database.knowledge,
      store,
      onProgress: ({ step, done, total }: ImportProgress) =>
        progress.report(`${step} ${done} of ${total} files`),
    }
    const outcome = await importFolder(deps, { ...base, folder, prune })
    const links = await database.knowledge.reportLinks(base.baseId, REPORTED_ENTRIES)
    const json = { ok: true, kb_id: base.baseId, ...makeReport(outcome, links, prune) }
    const kept = 'no: --prune removes the pages whose files are gone'
    return answerRecord(json, { ...json, ...(json.gone > 0 && !prune && { pruned: kept }) })
  } catch (error) {
    if (!(error instanceof FileProblemError)) throw error
    context.isNegativeAnswer()
    return printProblems(folder, error.problems)
  } finally {
    progress.end()
  }
}

/** Returns the base; one of another account is refused. The import itself creates an own base that is missing. */
async function findBase(
  database: { readonly accounts: Accounts; readonly knowledge: Knowledge },
  { account, kb }: ImportOptions,
): Promise<Pick<FolderToImport, 'baseId' | 'ownerId'>> {
  await database.accounts.show(account)
  if (kb === undefined || kb === DEFAULT_KB_ID) {
    const own = await database.knowledge.findDefaultBase(account)
    return own === null ? { baseId: newId('kb'), ownerId: account } : { baseId: own.id }
  }
  const base = await database.knowledge.showBase(kb)
  if (base.accountId === account) return { baseId: kb }
  throw new Refusal('kb_not_found', `There is no knowledge base ${kb} of ${account}`)
}

function printProblems(folder: string, problems: readonly FileProblem[]): Answer {
  const files = new Set(problems.map(({ file }) => file)).size
  const texts = [
    ...problems.map(({ file, line, message }) => printable(`${join(folder, file)}:${line}: ${message}`)),
    `${printCount(files, 'bad file')}; nothing was changed`,
  ]
  return {
    json: { ok: false, problems: problems.map((problem) => ({ ...problem })) },
    text: () => texts.map((text) => `${text}\n`).join(''),
  }
}
