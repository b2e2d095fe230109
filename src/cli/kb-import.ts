/** Output of `tollgate kb import`. */
import { join } from 'node:path'
import { REPORTED_ENTRIES, reportOf } from '../../pipelines/management/knowledge/report.ts'
import { DEFAULT_KB_ID } from '../../schemas/knowledge/wiki.ts'
import { newId } from '../core/keys/ids.ts'
import type { FileProblem } from '../markdown/problem.ts'
import type { Accounts } from '../postgres/accounts/repository.ts'
import { Refusal } from '../postgres/billing/refusal.ts'
import type { Knowledge } from '../postgres/knowledge/repository.ts'
import type { LinkReport } from '../postgres/knowledge/types.ts'
import type { FolderOutcome, FolderToImport, ImportProgress } from '../server/knowledge/import-folder.ts'
import type { Answer, Command, Context } from './context.ts'
import { counted, printable } from './output.ts'

const TERMINAL_INTERVAL_MS = 200
const FILE_INTERVAL_MS = 10_000
const CLEAR_LINE = '\r\u001b[K'

const HELP = `
Every .md and .markdown file below the folder becomes a page; hidden files and folders are left out. Front matter may
say title, summary, tags, aliases, confidence, needs_review and source; without a title the first heading is it, else
the file's name. [[Title]], [[Title|shown]] and [[Title#Heading]] become links, by title or alias. What has not changed
since the last import is left alone; a page keeps its id as long as its file keeps its path. Readers see the base as it
was until all of the import is there. Where a file is bad nothing is changed, and every bad file is named with its line.`

interface ImportOptions {
  account: string
  kb?: string
  prune?: boolean
}

export function addImport(program: Command, context: Context): void {
  program
    .group('kb')
    .command('import')
    .description('a folder of Markdown files into a knowledge base')
    .argument('<dir>', 'folder, with its folders')
    .requiredOption('--account <id>', 'whose base')
    .option('--kb <id>', "knowledge base id (default: the account's own)")
    .option('--prune', 'remove pages whose files are gone; without it they are kept and named')
    .addHelpText('after', HELP)
    .example('kb import --account acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF ./handbook')
    .answers((dir: string, options: ImportOptions) => runImport(context, dir, options))
}

async function runImport(context: Context, folder: string, options: ImportOptions): Promise<Answer> {
  const [{ importFolder }, { FileProblemError }] = await Promise.all([
    import('../server/knowledge/import-folder.ts'),
    import('../markdown/problem.ts'),
  ])
  const progress = progressTo(context.output.error)
  const prune = options.prune === true
  try {
    return await context.wiring.withLibrary(async ({ database, store }) => {
      const base = await baseOf(database, options)
      const deps = { wiki: database.knowledge, store, onProgress: progress.report }
      const outcome = await importFolder(deps, { ...base, folder, prune })
      const { baseId } = base
      return imported(baseId, outcome, await database.knowledge.reportLinks(baseId, REPORTED_ENTRIES), prune)
    })
  } catch (error) {
    if (!(error instanceof FileProblemError)) throw error
    context.isNegativeAnswer()
    return refused(folder, error.problems)
  } finally {
    progress.end()
  }
}

/** Returns the base; one of another account is refused. The import itself creates an own base that is missing. */
async function baseOf(
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

function refused(folder: string, problems: readonly FileProblem[]): Answer {
  const files = new Set(problems.map(({ file }) => file)).size
  const line = (problem: FileProblem) =>
    printable(`${join(folder, problem.file)}:${problem.line}: ${problem.message}`)
  return {
    json: { ok: false, problems: problems.map((problem) => ({ ...problem })) },
    text: () =>
      [...problems.map(line), `${counted(files, 'bad file')}; nothing was changed`]
        .map((text) => `${text}\n`)
        .join(''),
  }
}

function imported(baseId: string, outcome: FolderOutcome, links: LinkReport, prune: boolean): Answer {
  const { added, changed, unchanged, gone, pages, ignoredFields } = outcome
  const json = { ok: true, kb_id: baseId, ...reportOf(outcome, links, prune) }
  const text = () =>
    [
      `imported into ${baseId}: ${added} added, ${changed} changed, ${unchanged} unchanged, ${counted(pages, 'page')} in all`,
      ...some(gone.length, `gone, ${prune ? 'removed' : 'kept: --prune removes them'}`, gone),
      ...some(
        links.unresolved.count,
        'links lead to no page',
        links.unresolved.first.map(({ path, link }) => `${path}: [[${link}]]`),
      ),
      ...some(
        links.sameTitle.count,
        'titles are of several pages; links lead to the first',
        links.sameTitle.first.map(({ title, paths }) => `${title}: ${paths.join(', ')}`),
      ),
      ...some(
        ignoredFields.size,
        'fields of front matter mean nothing here',
        [...ignoredFields].map(([name, files]) => `${name} (${counted(files, 'file')})`),
      ),
    ]
      .map((line) => `${printable(line)}\n`)
      .join('')
  return { json, text }
}

/** Returns their number, and the first of them. */
function some(count: number, what: string, all: readonly string[]): string[] {
  if (count === 0) return []
  const shown = all.slice(0, REPORTED_ENTRIES)
  const more = count > shown.length ? [`  and ${count - shown.length} more`] : []
  return [`${count} ${what}:`, ...shown.map((line) => `  ${line}`), ...more]
}

interface Progress {
  report(progress: ImportProgress): void
  end(): void
}

/**
 * Returns a printer of progress: on a terminal one line that changes, else a line at an interval; nothing for a short
 * import.
 */
function progressTo(print: (text: string) => void, isTerminal = process.stderr.isTTY === true): Progress {
  const intervalMs = isTerminal ? TERMINAL_INTERVAL_MS : FILE_INTERVAL_MS
  let printedAt = performance.now()
  let isOpen = false
  return {
    report({ step, done, total }) {
      const now = performance.now()
      if (now - printedAt < intervalMs) return
      printedAt = now
      const line = `${step} ${done} of ${total} files`
      print(isTerminal ? CLEAR_LINE + line : `${line}\n`)
      isOpen = isTerminal
    },
    end() {
      if (isOpen) print(CLEAR_LINE)
    },
  }
}
