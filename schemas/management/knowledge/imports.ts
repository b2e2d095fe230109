/** Operations of imports into a knowledge base. */
import { z } from 'zod'
import { queryFlag } from '../../query.ts'
import { jobProgress, lastJobs } from '../jobs.ts'
import { operation, toPageSchema } from '../operation.ts'

const allows = ['owner', 'admin'] as const
const MIB = 1024 * 1024
/** The largest upload, in bytes. */
export const MAX_UPLOAD_BYTES = 256 * MIB
/** The most files of one upload; a zip may have more in it. */
export const MAX_UPLOAD_FILES = 1_000

/** The first of many, with their number. */
const some = <Entry extends z.ZodType>(entry: Entry) => z.object({ count: z.int(), first: z.array(entry) })

/** Report of an import. */
const importReport = z.object({
  pages: z.int().describe('In the base now.'),
  added: z.int(),
  changed: z.int(),
  unchanged: z.int(),
  gone: z.int().describe('Pages without a file.'),
  pruned: z.boolean().describe('Whether those were removed.'),
  gone_paths: z.array(z.string()).describe('Paths of the first 1,000 of them.'),
  unresolved_links: some(z.object({ path: z.string(), link: z.string() })).describe(
    'Links that lead to no page.',
  ),
  same_titles: some(z.object({ title: z.string(), paths: z.array(z.string()) })).describe(
    'Titles of several pages: links lead to the first.',
  ),
  ignored_fields: z
    .record(z.string(), z.int())
    .describe('Fields of front matter that mean nothing here, and the number of files that have them.'),
})
export type ImportReport = z.infer<typeof importReport>

/** A bad file. */
const importProblem = z.object({ file: z.string(), line: z.int(), message: z.string() })
export type ImportProblem = z.infer<typeof importProblem>

const job = z.object({
  ...jobProgress,
  knowledge_base_id: z.string(),
  files: z.array(z.string()).describe('As uploaded.'),
  done: z.int().describe('Files.'),
  total: z.int(),
  report: importReport.nullable(),
  problems: z
    .array(importProblem)
    .describe('Every problem of every bad file. With one, nothing was changed.'),
})

export const startImport = operation('startImport', {
  summary: 'Import a folder of Markdown files: a zip, or the files with their paths as names.',
  details:
    'The body is a multipart form of files. Runs in the background, all or nothing: readers see the base as it was ' +
    'until all of it is there. The folder that all files of a zip are in counts as the top. 409 while another import ' +
    'of the base is under way.',
  input: z.object({
    id: z.string().describe('The knowledge base; `default` with `account_id` for the own one of an account.'),
    account_id: z.string().optional(),
    prune: queryFlag().default(false).describe('Remove pages whose files are gone.'),
  }),
  answer: { name: 'KnowledgeImport', schema: job },
  scope: 'knowledge',
  allows,
  isUpload: true,
  status: 201,
})

export const listImports = operation('listImports', {
  summary: 'List the last imports of a knowledge base, the newest first.',
  input: z.object({ id: z.string(), ...lastJobs }),
  answer: {
    name: 'KnowledgeImportList',
    schema: toPageSchema(job),
  },
  scope: 'read',
  allows,
})

export const showImport = operation('showImport', {
  summary: 'Show an import with its progress and its report.',
  input: z.object({ id: z.string(), import_id: z.string() }),
  answer: { name: 'KnowledgeImportInFull', schema: job },
  scope: 'read',
  allows,
})

export const cancelImport = operation('cancelImport', {
  summary: 'Cancel an import. The base stays as it was.',
  input: z.object({ id: z.string(), import_id: z.string() }),
  answer: { name: 'CancelledKnowledgeImport', schema: job },
  scope: 'knowledge',
  allows,
})
